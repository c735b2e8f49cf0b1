"""Where things stand on a page, for the tests of this folder."""


def sections(page):
    """Return the sections of a page by their titles."""
    return {one.title: one for one in page.sections}


def tables_of(page, title):
    """Return the tables of a section by the first words of their captions."""
    return {table.caption.partition(",")[0]: table for table in sections(page)[title].tables}


def column(table, place):
    """Return the text of a column of a table, by that of the first one."""
    return {row[0].text: row[place].text for row in table.rows}


def values(page):
    """Return the numbers of a page by their names."""
    return {name: one.value for name, one in page.items()}
