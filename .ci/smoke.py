"""What a user does with the installed package; `.ci/smoke` runs it in its environment, in an empty folder.

The arguments are the checkout, of which only README and version are read, and the extras that are there.
"""

import importlib
import importlib.metadata
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import dp_metrics as dp

CHECKOUT, EXTRAS = Path(sys.argv[1]), sys.argv[2]
COMMAND = Path(sys.executable).with_name("dp-metrics")
RNG = np.random.default_rng(0)
ILL = (RNG.random(5000) < 0.2).astype(int)
SCORE = np.clip(0.2 + 0.5 * ILL + 0.1 * RNG.normal(size=5000), 0.01, 0.99)
SEX = RNG.choice(["f", "m"], 5000)


def command(*words: object, code: int = 0) -> str:
    """Run the command line and return what it printed; its exit code must be as told."""
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == code, (words, done.stdout, done.stderr)
    print(f"$ dp-metrics {' '.join(map(str, words))}   -> {code}")
    return done.stdout + done.stderr


def installed_and_whole() -> None:
    """Check that the package is the installed one, of one version; that what lacks an extra says which."""
    with open(CHECKOUT / "pyproject.toml", "rb") as file:
        version = tomllib.load(file)["project"]["version"]
    assert Path(dp.__file__).is_relative_to(sys.prefix), dp.__file__
    assert dp.__version__ == importlib.metadata.version("dp_metrics") == version
    assert command("--version").split()[-1] == version
    names = [module.name for module in pkgutil.walk_packages(dp.__path__, "dp_metrics.")]
    refused = {}
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            refused[name] = str(error)
    assert all("pip install" in message and "dp_metrics[" in message for message in refused.values()), refused
    print(f"{len(names) - len(refused)} modules are imported; need an extra: {', '.join(refused) or 'none'}")
    assert set(dp.__all__) <= set(dir(dp))
    for name in dp.__all__:
        getattr(dp, name)


def readme() -> None:
    """Run the programs of the README, one after the other."""
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for program in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(program, "README.md", "exec"), names)
    assert command("budget", "budget.sqlite").count("private_m") == 2


def frame() -> None:
    """Print metrics by group."""
    metrics = {
        "recall": partial(dp.private_recall_score, labels=[0, 1]),
        "precision": partial(dp.private_precision_score, labels=[0, 1]),
    }
    predicted = (SCORE > 0.5).astype(int)
    settings = {"sensitive_features": SEX, "group_labels": ["f", "m"], "epsilon": 2.0}
    by_group = dp.PrivateMetricFrame(metrics=metrics, y_true=ILL, y_pred=predicted, **settings)
    print(by_group.by_group)
    for needs_more in (by_group.plot, by_group.frame, page().to_html, page().frame):
        says_which_extra(needs_more)


def says_which_extra(call: Callable[[], object]) -> None:
    """Check that a call fails for want of an extra, and names it."""
    try:
        call()
    except ImportError as error:
        said = str(error)
    else:
        said = "nothing"
    assert 'pip install "dp_metrics[report]"' in said, (call, said)


def page() -> dp.PrivateEvaluation:
    """Return a page about a model, as one release."""
    return dp.private_evaluate(
        ILL, y_score=SCORE, epsilon=2.0, labels=[0, 1], sensitive_features=SEX, group_labels=["f", "m"]
    )


def files() -> None:
    """Ask the command line about a file of predictions, and the budget about both answers."""
    columns = ILL, (SCORE > 0.5).astype(int), SCORE, SEX
    rows = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    Path("predictions.csv").write_text("\n".join(["ill,predicted,score,sex", *rows, ""]), encoding="utf-8")
    asked = ["predictions.csv", "--y-true", "ill", "--epsilon", 1, "--budget", "file.sqlite", "--total", 5]
    groups = ["--labels", 0, 1, "--sensitive", "sex", "--group-labels", "f", "m"]
    command("evaluate", *asked, "--y-score", "score", *groups, "--output", "page.html")
    assert "<html" in Path("page.html").read_text(encoding="utf-8")
    recall = ["--metric", "recall", "--y-pred", "predicted", "--labels", "0", "1"]
    print(command("score", *asked, *recall))
    print(command("budget", "file.sqlite"))


installed_and_whole()
if EXTRAS:
    assert "private_mse" in command("evaluate", "--output", "demonstration")
    assert list(Path("demonstration").glob("*.png"))
    page().to_html("page.html")
    files()
else:
    readme()
    frame()
    assert "recall" in page().to_markdown()
    assert 'pip install "dp_metrics[evaluation]"' in command("evaluate", code=2)
    asked = ["--metric", "mse", "--y-true", "a", "--y-pred", "b", "--epsilon", 1]
    assert 'pip install "dp_metrics[cli]"' in command("score", "predictions.csv", *asked, code=2)
