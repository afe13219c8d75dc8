"""The training arguments of the papers, as a script of a trainer that reads the exported file.

Flags are those of slime at 624b824 and ms-swift at 3602360 (4.6). A script finds the file in its own folder, so both
can be moved together.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from prchain.core.errors import UsageError

Recipe = Literal["slime", "swift"]
"""A trainer; its recipe is for files in the format of the same name."""

_FOLDER = 'folder="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"'


def recipe_path(out: Path) -> Path:
    """The name of the script beside `out`."""
    return out.with_name(f"{out.name}.recipe.sh")


def check_readable(recipe: Recipe, out: Path) -> None:
    """Raise `UsageError` if the trainer would not know by the file's name how to read it."""
    if out.suffix not in {".jsonl", ".parquet"}:
        raise UsageError(
            f"the trainer of --recipe {recipe} tells by a name how to read the file: "
            "let --out end in .jsonl or .parquet"
        )


def recipe_text(recipe: Recipe, train: str, validation: str | None = None) -> str:
    """The script of a trainer for files of the given names, which are in the format of the trainer's name."""
    return _SCRIPTS[recipe](train, validation)


def _beside(name: str) -> str:
    """A file in the script's folder, for bash; no name can act in it."""
    return f'"$folder"/{shlex.quote(name)}'


def _slime(train: str, validation: str | None) -> str:
    # The paper prints the loss type as "sft.loss", which slime does not know. slime validates on no file in SFT.
    return f"""\
# Format slime. Arguments for slime: daVinci-Agency, appendix E.
# Source this in a run script of slime, beside its MODEL_ARGS and CKPT_ARGS, and pass all arrays to train_async.py.
# --loss-mask-type must fit the model's chat template. The parallel sizes take 64 GPUs a replica. Expert parallelism is
# for mixtures of experts: a dense model takes --expert-model-parallel-size 1.
{_FOLDER}

SFT_ARGS=(
   --rollout-function-path slime.rollout.sft_rollout.generate_rollout
   --prompt-data {_beside(train)}
   --input-key messages
   --tool-key tools
   --rollout-shuffle
   --num-epoch 2
   --rollout-batch-size 64
   --global-batch-size 64
   --loss-type sft_loss
   --calculate-per-token-loss
   --disable-compute-advantages-and-returns
   --debug-train-only
)

PERF_ARGS=(
   --tensor-model-parallel-size 8
   --sequence-parallel
   --pipeline-model-parallel-size 4
   --context-parallel-size 2
   --expert-model-parallel-size 16
   --expert-tensor-parallel-size 1
   --recompute-granularity full
   --recompute-method uniform
   --recompute-num-layers 1
   --use-dynamic-batch-size
   --max-tokens-per-gpu 65536
)

OPTIMIZER_ARGS=(
   --optimizer adam
   --lr 2e-6
   --lr-decay-style cosine
   --min-lr 1e-7
   --lr-warmup-fraction 0.1
   --weight-decay 0.1
   --adam-beta1 0.9
   --adam-beta2 0.98
   --optimizer-cpu-offload
   --overlap-cpu-optimizer-d2h-h2d
   --use-precision-aware-optimizer
)
"""


def _swift(train: str, validation: str | None) -> str:
    files = f"--dataset {_beside(train)}"
    if validation is not None:
        files += f" \\\n    --val_dataset {_beside(validation)}"
    return f"""\
#!/usr/bin/env bash
# Format swift. Arguments for ms-swift's Megatron backend: P2T, appendix J.
# MODEL names the model; further arguments are passed on. The paper trains Qwen2.5-Coder-Instruct (14B, 32B) on one node
# of 8 GPUs: YaRN stretches that model's window of 32768 tokens four times. A model with a window of 131072 tokens or
# more needs no --rope_scaling.
set -euo pipefail
{_FOLDER}

NPROC_PER_NODE="${{NPROC_PER_NODE:-8}}" megatron sft \\
    --model "${{MODEL:?name the model to train}}" \\
    {files} \\
    --tuner_type full \\
    --num_train_epochs 3 \\
    --optimizer adam \\
    --lr 2e-5 \\
    --adam_beta1 0.9 \\
    --adam_beta2 0.999 \\
    --weight_decay 0.01 \\
    --clip_grad 1.0 \\
    --lr_warmup_fraction 0.05 \\
    --lr_decay_style cosine \\
    --min_lr 0 \\
    --global_batch_size 4 \\
    --packing true \\
    --max_length 131072 \\
    --bf16 true \\
    --loss_scale default \\
    --rope_scaling '{{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}' \\
    --tensor_model_parallel_size 2 \\
    --context_parallel_size 4 \\
    --sequence_parallel true \\
    "$@"
"""


_SCRIPTS: Mapping[Recipe, Callable[[str, str | None], str]] = {"slime": _slime, "swift": _swift}
