"""Private metrics as a MedPerf metrics container: reads mounted folders, writes results.yaml; no network.

Predictions and labels are the CSV files of the two folders: `id, score` and `id, label, patient`. Parameters
and results are JSON, which is YAML too: no other package is needed to read and write them.
"""

import argparse
import json
from pathlib import Path

import pandas as pd

from dp_metrics import private_evaluate


def read_folder(folder: Path) -> pd.DataFrame:
    """Return all rows of the CSV files of a folder, by their id; ids are text, whatever they look like."""
    ids = {"id": str, "patient": str}
    return pd.concat([pd.read_csv(path, dtype=ids) for path in sorted(folder.glob("*.csv"))]).set_index("id")


def evaluate(predictions: Path, labels: Path, parameters_file: Path, output_path: Path) -> None:
    """Release a page of the records, and write its numbers with their limits."""
    known, found = read_folder(labels), read_folder(predictions)
    if known.index.has_duplicates or not known.index.equals(found.index):
        raise SystemExit("predictions and labels must have the same ids, in the same order, each once")
    page = private_evaluate(
        known["label"],
        y_score=found["score"],
        groups=known["patient"],
        **json.loads(parameters_file.read_text()),
    )
    output_path.write_text(
        json.dumps({"epsilon": page.epsilon, "numbers": page.to_dict()["numbers"]}, indent=1)
    )


def main() -> None:
    """Read where MedPerf has mounted the volumes, unless told otherwise."""
    volumes = Path("/mlcommons/volumes")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--predictions", type=Path, default=volumes / "predictions")
    parser.add_argument("--labels", type=Path, default=volumes / "labels")
    parser.add_argument(
        "--parameters_file", type=Path, default=volumes / "parameters" / "parameters_file.yaml"
    )
    parser.add_argument("--output_path", type=Path, default=volumes / "results" / "results.yaml")
    evaluate(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
