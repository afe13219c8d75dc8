"""The training arguments of the papers, as a script of a trainer that reads the exported file.

Flags are those of slime at 624b824 with Megatron-LM at d98e8a6, and of ms-swift 4.6.0. A script finds the file in its
own folder, so both can be moved together.
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
#!/usr/bin/env bash
# Format slime. Arguments for slime: daVinci-Agency, appendix E.
# Run it beside a ray cluster (`ray start`), or source it in a run script of slime for its arrays. Run, it wants
#   SLIME, MEGATRON  checkouts of slime and Megatron-LM, as every node has them
#   MODEL            a file of slime's scripts/models without its ending: glm4.5-355B-A32B, qwen3-8B ...
#   CHECKPOINT, REFERENCE, SAVE  the model as Hugging Face has it, the same as torch_dist, and where results go
#   MASK             --loss-mask-type, which must fit the model's chat template: qwen, qwen3, qwen3_5 ...
#   NODES            of 8 GPUs each; 8 unless told
# and further arguments go after those below. The parallel sizes take 64 GPUs a replica. Expert parallelism is for
# mixtures of experts: a dense model takes --expert-model-parallel-size 1.
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

# The paper prints none of these: they are those of slime's own scripts for SFT. Megatron drops out 0.1 else.
MISC_ARGS=(
   --attention-dropout 0.0
   --hidden-dropout 0.0
   --accumulate-allreduce-grads-in-fp32
   --attention-softmax-in-fp32
   --attention-backend flash
)

if [[ "${{BASH_SOURCE[0]}}" == "$0" ]]; then
   set -euo pipefail
   : "${{SLIME:?name a checkout of slime}}" "${{MEGATRON:?name a checkout of Megatron-LM}}"
   source "$SLIME/scripts/models/${{MODEL:?name a file of scripts/models}}.sh"
   cd "$SLIME"
   printf -v environment '{{"env_vars": {{"PYTHONPATH": "%s", "CUDA_DEVICE_MAX_CONNECTIONS": "1"}}}}' "$MEGATRON"
   ray job submit --address "${{RAY_ADDRESS:-http://127.0.0.1:8265}}" \
      --runtime-env-json "$environment" -- python3 train_async.py \
      --actor-num-nodes "${{NODES:-8}}" --actor-num-gpus-per-node 8 \
      "${{MODEL_ARGS[@]}}" \
      --hf-checkpoint "${{CHECKPOINT:?name the model}}" --ref-load "${{REFERENCE:?name the model as torch_dist}}" \
      --load "${{SAVE:?name a folder for results}}" --save "$SAVE" --save-interval 1000 \
      --loss-mask-type "${{MASK:?name the mask of the chat template}}" \
      "${{SFT_ARGS[@]}}" "${{PERF_ARGS[@]}}" "${{OPTIMIZER_ARGS[@]}}" "${{MISC_ARGS[@]}}" "$@"
fi
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
