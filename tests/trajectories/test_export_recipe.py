"""The scripts with the papers' training arguments: run by bash, they give a trainer the exported file and those."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from prchain.cli import run
from tests.trajectories.sampleworld import SampleWorld, Talk, sample_world
from trajectories.export.recipe import recipe_text

BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="there is no bash here")

SLIME = {
    "--rollout-function-path": "slime.rollout.sft_rollout.generate_rollout",
    "--input-key": "messages",
    "--tool-key": "tools",
    "--rollout-shuffle": True,
    "--num-epoch": "2",
    "--rollout-batch-size": "64",
    "--global-batch-size": "64",
    "--loss-type": "sft_loss",
    "--calculate-per-token-loss": True,
    "--disable-compute-advantages-and-returns": True,
    "--debug-train-only": True,
    "--tensor-model-parallel-size": "8",
    "--sequence-parallel": True,
    "--pipeline-model-parallel-size": "4",
    "--context-parallel-size": "2",
    "--expert-model-parallel-size": "16",
    "--expert-tensor-parallel-size": "1",
    "--recompute-granularity": "full",
    "--recompute-method": "uniform",
    "--recompute-num-layers": "1",
    "--use-dynamic-batch-size": True,
    "--max-tokens-per-gpu": "65536",
    "--optimizer": "adam",
    "--lr": "2e-6",
    "--lr-decay-style": "cosine",
    "--min-lr": "1e-7",
    "--lr-warmup-fraction": "0.1",
    "--weight-decay": "0.1",
    "--adam-beta1": "0.9",
    "--adam-beta2": "0.98",
    "--optimizer-cpu-offload": True,
    "--overlap-cpu-optimizer-d2h-h2d": True,
    "--use-precision-aware-optimizer": True,
}
"""daVinci-Agency, appendix E."""

SWIFT = {
    "--model": "student",
    "--tuner_type": "full",
    "--num_train_epochs": "3",
    "--optimizer": "adam",
    "--lr": "2e-5",
    "--adam_beta1": "0.9",
    "--adam_beta2": "0.999",
    "--weight_decay": "0.01",
    "--clip_grad": "1.0",
    "--lr_warmup_fraction": "0.05",
    "--lr_decay_style": "cosine",
    "--min_lr": "0",
    "--global_batch_size": "4",
    "--packing": "true",
    "--max_length": "131072",
    "--bf16": "true",
    "--loss_scale": "default",
    "--rope_scaling": '{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}',
    "--tensor_model_parallel_size": "2",
    "--context_parallel_size": "4",
    "--sequence_parallel": "true",
}
"""P2T, appendix J."""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SampleWorld]:
    """Two trajectories of two repositories."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRCHAIN_DB", "prchain.db")
    with sample_world(tmp_path) as world:
        for place in range(2):
            world.chain(f"c{place}", first=10 * place + 1, repository=("shop", f"r{place}"))
            world.trajectory(f"t{place}", f"c{place}", Talk().system().query(1).bash(f"echo {place}").submit())
        yield world


def arguments_of_script(words: Sequence[str]) -> dict[str, str | bool]:
    """Flags to values; True for a flag without one."""
    flags: dict[str, str | bool] = {}
    last = ""
    for word in words:
        if word.startswith("--"):
            assert word not in flags
            flags[last := word] = True
        else:
            assert flags[last] is True
            flags[last] = word
    return flags


def bash(script: str, *arguments: str, **environment: str) -> list[str]:
    """What a script prints, split at NUL; it runs in the root folder."""
    process = subprocess.run(
        [str(BASH), "-euc", script, "-", *arguments],
        check=True,
        capture_output=True,
        text=True,
        cwd="/",
        env={"PATH": os.environ["PATH"], **environment},
    )
    return process.stdout.split("\0")[:-1]


def slime_arguments(script: Path) -> dict[str, str | bool]:
    arrays = '"${SFT_ARGS[@]}" "${PERF_ARGS[@]}" "${OPTIMIZER_ARGS[@]}"'
    return arguments_of_script(bash(f'. "$1"; printf "%s\\0" {arrays}', str(script)))


def slime_run(script: Path, folder: Path, checkout: Path, *more: str, **environment: str) -> dict[str, str | bool]:
    """The flags with which the script has ray start slime; `folder` gets a stand-in for ray."""
    program = folder / "ray"
    program.write_text('#!/bin/sh\nprintf "%s\\0" "$@"\n')
    program.chmod(0o755)
    needed = {"MEGATRON": "/m", "CHECKPOINT": "/hf", "REFERENCE": "/dist", "SAVE": "/out", "MASK": "qwen3"}
    path = f"{folder}:{os.environ['PATH']}"
    words = bash(f'PATH="{path}"; bash "$@"', str(script), *more, **{"SLIME": str(checkout), **needed, **environment})
    assert words[:2] == ["job", "submit"]
    at = words.index("--")
    assert words[at : at + 3] == ["--", "python3", "train_async.py"]
    return arguments_of_script([*words[2:at], *words[at + 3 :]])


def swift_arguments(script: Path, folder: Path, **environment: str) -> tuple[list[str], dict[str, str | bool]]:
    """The words before the flags, and the flags, that the script calls `megatron` with; `folder` gets a stand-in."""
    program = folder / "megatron"
    program.write_text('#!/bin/sh\nprintf "%s\\0" "$NPROC_PER_NODE" "$@"\n')
    program.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    words = bash(f'PATH="{path}"; bash "$1" --save_steps 9', str(script), MODEL="student", **environment)
    return words[:2], arguments_of_script(words[2:])


@needs_bash
def test_the_script_for_slime_holds_the_arguments_of_the_paper_and_names_the_file(world: SampleWorld) -> None:
    assert run(["export", "--format", "slime", "--recipe", "slime", "--out", "sft.jsonl"]) == 0
    script = Path("sft.jsonl.recipe.sh").resolve()
    assert slime_arguments(script) == SLIME | {"--prompt-data": str(script.with_name("sft.jsonl"))}
    assert "# Format slime." in script.read_text() and "daVinci-Agency, appendix E" in script.read_text()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A slime with one model's file."""
    models = tmp_path / "slime" / "scripts" / "models"
    models.mkdir(parents=True)
    (models / "glm.sh").write_text("MODEL_ARGS=(--num-layers 92)\n")
    return tmp_path / "slime"


@needs_bash
def test_the_script_for_slime_runs_by_itself_with_the_model_and_what_the_paper_does_not_tell(
    checkout: Path, tmp_path: Path
) -> None:
    script = tmp_path / "sft.jsonl.recipe.sh"
    script.write_text(recipe_text("slime", "sft.jsonl"))
    given = slime_run(script, tmp_path, checkout, "--wandb-project", "x", MODEL="glm", NODES="2")
    assert given.items() >= (SLIME | {"--prompt-data": str(tmp_path / "sft.jsonl")}).items()
    rest = {flag: value for flag, value in given.items() if flag not in SLIME and "dropout" not in flag}
    assert (
        rest.items()
        >= {
            "--num-layers": "92",
            "--actor-num-nodes": "2",
            "--hf-checkpoint": "/hf",
            "--ref-load": "/dist",
            "--save": "/out",
            "--loss-mask-type": "qwen3",
            "--wandb-project": "x",
        }.items()
    )
    variables = json.loads(str(given["--runtime-env-json"]))
    assert variables == {"env_vars": {"PYTHONPATH": "/m", "CUDA_DEVICE_MAX_CONNECTIONS": "1"}}


@needs_bash
@pytest.mark.parametrize("lacks", ["SLIME", "MEGATRON", "MODEL", "CHECKPOINT", "REFERENCE", "SAVE", "MASK"])
def test_the_script_for_slime_says_what_it_lacks(lacks: str, checkout: Path, tmp_path: Path) -> None:
    script = tmp_path / "sft.jsonl.recipe.sh"
    script.write_text(recipe_text("slime", "sft.jsonl"))
    with pytest.raises(subprocess.CalledProcessError) as raised:
        slime_run(script, tmp_path, checkout, **{"MODEL": "glm", lacks: ""})
    assert f"{lacks}: name " in raised.value.stderr


@needs_bash
def test_the_script_for_swift_trains_with_the_arguments_of_the_paper_on_the_file(
    world: SampleWorld, tmp_path: Path
) -> None:
    assert run(["export", "--format", "swift", "--recipe", "swift", "--out", "sft.parquet"]) == 0
    script = Path("sft.parquet.recipe.sh").resolve()
    (processes, command), flags = swift_arguments(script, tmp_path)
    assert (processes, command) == ("8", "sft")
    assert flags == SWIFT | {"--dataset": str(script.with_name("sft.parquet")), "--save_steps": "9"}
    assert "# Format swift." in script.read_text() and "P2T, appendix J" in script.read_text()
    assert swift_arguments(script, tmp_path, NPROC_PER_NODE="16")[0] == ["16", "sft"]


@needs_bash
def test_the_script_for_swift_wants_a_model(world: SampleWorld) -> None:
    assert run(["export", "--format", "swift", "--recipe", "swift", "--out", "sft.jsonl"]) == 0
    with pytest.raises(subprocess.CalledProcessError) as failed:
        bash('bash "$1"', str(Path("sft.jsonl.recipe.sh").resolve()))
    assert "MODEL: name the model to train" in failed.value.stderr


@needs_bash
def test_swift_validates_on_the_second_file_where_it_holds_samples(world: SampleWorld, tmp_path: Path) -> None:
    export = ["export", "--format", "swift", "--recipe", "swift", "--split", "0.5"]
    assert run([*export, "--out", "sft.jsonl"]) == 0
    _, flags = swift_arguments(tmp_path / "sft.jsonl.recipe.sh", tmp_path)
    assert flags["--val_dataset"] == str(tmp_path.resolve() / "sft.validation.jsonl")
    assert run([*export, "--out", "one.jsonl", "--repository", "shop/r0"]) == 0
    assert "--val_dataset" not in Path("one.jsonl.recipe.sh").read_text()


@needs_bash
@pytest.mark.parametrize("recipe", ["slime", "swift"])
def test_no_name_of_a_file_or_folder_acts_in_a_script(recipe: str, world: SampleWorld, tmp_path: Path) -> None:
    folder = tmp_path / "a $(touch owned) b"
    folder.mkdir()
    name = 'it\'s `touch owned` "$HOME"\n.jsonl'
    assert run(["export", "--format", recipe, "--recipe", recipe, "--out", str(folder / name)]) == 0
    script = folder / f"{name}.recipe.sh"
    flags = slime_arguments(script) if recipe == "slime" else swift_arguments(script, tmp_path)[1]
    assert flags["--prompt-data" if recipe == "slime" else "--dataset"] == str(folder.resolve() / name)
    assert not list(tmp_path.rglob("owned")) and not Path("/owned").exists()


@needs_bash
def test_a_script_finds_the_file_where_both_were_moved(world: SampleWorld, tmp_path: Path) -> None:
    assert run(["export", "--recipe", "slime", "--out", "sft.jsonl"]) == 0
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for path in tmp_path.glob("sft.jsonl*"):
        path.rename(moved / path.name)
    assert slime_arguments(moved / "sft.jsonl.recipe.sh")["--prompt-data"] == str(moved.resolve() / "sft.jsonl")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--format", "swift", "--recipe", "slime"), "--recipe slime trains on --format slime, not on swift"),
        (("--recipe", "swift"), "--recipe swift trains on --format swift, not on slime"),
        (("--format", "mini", "--recipe", "slime"), "--recipe slime trains on --format slime, not on mini"),
        (
            ("--format", "swebench", "--recipe", "slime"),
            "--format swebench writes predictions, not samples: leave out --recipe",
        ),
    ],
)
def test_a_recipe_is_for_its_own_format_alone(
    arguments: tuple[str, ...], said: str, world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", "--out", "sft.jsonl", *arguments]) == 2
    assert capsys.readouterr().err.splitlines() == [f"prchain: error: {said}"]
    assert not list(Path().glob("sft*"))


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("-", "--recipe names the file that is written; give --out a file's name"),
        (
            "sft.json",
            "the trainer of --recipe slime tells by a name how to read the file: let --out end in .jsonl or .parquet",
        ),
    ],
)
def test_a_recipe_needs_a_file_that_the_trainer_can_read(
    out: str, said: str, world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", "--recipe", "slime", "--out", out]) == 2
    assert capsys.readouterr().err.splitlines() == [f"prchain: error: {said}"]
    assert not list(Path().glob("sft*"))


def test_report_and_card_tell_of_the_recipe(world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "--recipe", "slime", "--out", "sft.jsonl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"][-1] == "sft.jsonl.recipe.sh"
    assert json.loads(Path("sft.jsonl.card.json").read_text())["options"]["recipe"] == "slime"
    assert run(["export", "--out", "plain.jsonl"]) == 0
    assert not Path("plain.jsonl.recipe.sh").exists()


def test_a_recipe_is_not_replaced_unless_forced(world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
    Path("sft.jsonl.recipe.sh").write_text("mine")
    assert run(["export", "--recipe", "slime", "--out", "sft.jsonl"]) == 2
    assert "sft.jsonl.recipe.sh is there already" in capsys.readouterr().err
    assert not Path("sft.jsonl").exists() and Path("sft.jsonl.recipe.sh").read_text() == "mine"
    assert run(["export", "--recipe", "slime", "--out", "sft.jsonl", "--force"]) == 0
    assert "SFT_ARGS" in Path("sft.jsonl.recipe.sh").read_text()


def test_a_recipe_of_an_export_before_is_never_left_beside_a_new_file(
    world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", "--recipe", "slime", "--out", "sft.jsonl"]) == 0
    for path in Path().glob("sft.jsonl*"):
        if not path.name.endswith(".sh"):
            path.unlink()
    assert run(["export", "--format", "swift", "--out", "sft.jsonl"]) == 2
    assert "sft.jsonl.recipe.sh is there from another export" in capsys.readouterr().err
    assert run(["export", "--format", "swift", "--out", "sft.jsonl", "--force"]) == 0
    assert not Path("sft.jsonl.recipe.sh").exists()


def test_a_recipe_replaces_no_file_that_is_read(world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
    Path("sft.jsonl.recipe.sh").write_text("texts of a benchmark")
    arguments = ["--recipe", "slime", "--out", "sft.jsonl", "--overlap", "sft.jsonl.recipe.sh", "--force"]
    assert run(["export", *arguments]) == 2
    assert "which this command reads" in capsys.readouterr().err


def test_without_samples_there_is_no_recipe(world: SampleWorld) -> None:
    assert run(["export", "--recipe", "slime", "--out", "sft.jsonl", "--max-tokens", "1"]) == 1
    assert not list(Path().glob("sft*"))
