"""Reads exported files with the consumers' own code, and prints what is under loss as JSON.

Runs in the consumers' environment, where prchain is not: `python consumer.py CONSUMER FILE...`. Printed is, for every
row, the whole text and the list of the texts under loss: runs of tokens with a label, decoded. A token is a byte, so
texts compare exactly; with the folder of a real tokenizer in PRCHAIN_TEST_TOKENIZER they are that one's.
"""

# mypy: ignore-errors
# None of the packages that it imports is there where types are checked.

from __future__ import annotations

import ast
import importlib.util
import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HERE = Path(__file__).parent
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def tokenizer() -> Any:
    """Bytes as tokens, ChatML's marks as one token each."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    if folder := os.environ.get("PRCHAIN_TEST_TOKENIZER"):
        return AutoTokenizer.from_pretrained(folder)

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE({letter: place for place, letter in enumerate(alphabet)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(SPECIALS)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=(HERE / "chatml.jinja").read_text(encoding="utf-8"),
    )


def token_row(tokens: Any, ids: list[int], labels: list[int]) -> dict[str, Any]:
    """The whole text of a row, and those of the runs of tokens that have a label."""
    out: list[list[int]] = []
    before = False
    for token, label in zip(ids, labels, strict=True):
        if label != -100:
            if not before:
                out.append([])
            out[-1].append(token)
        before = label != -100
    return {
        "text": tokens.decode(ids, skip_special_tokens=False),
        "under_loss": [tokens.decode(run, skip_special_tokens=False) for run in out],
        "tokens": len(ids),
        "tokens_under_loss": sum(map(len, out)),
    }


def tiny_model(size: int) -> Any:
    """A model that SFTTrainer can hold; nothing is asked of it."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=size,
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
            num_key_value_heads=1,
        )
    )


def rows_of(file: Path) -> Any:
    """The file by `datasets`, as JSON lines or Parquet."""
    from datasets import load_dataset

    kind = "parquet" if file.suffix == ".parquet" else "json"
    with tempfile.TemporaryDirectory() as cache:
        return load_dataset(kind, data_files=str(file), split="train", cache_dir=cache, keep_in_memory=True)


def trl(file: Path, **settings: Any) -> list[dict[str, Any]]:
    """TRL: its trainer's preprocessing and its collator, which makes the labels."""
    from trl import SFTConfig, SFTTrainer

    tokens = tokenizer()
    with tempfile.TemporaryDirectory() as folder:
        trainer = SFTTrainer(
            model=tiny_model(len(tokens)),
            args=SFTConfig(output_dir=folder, report_to=[], use_cpu=True, max_length=None, bf16=False, **settings),
            train_dataset=rows_of(file),
            processing_class=tokens,
        )
        out = []
        for row in trainer.train_dataset:
            batch = trainer.data_collator([row])
            out.append(token_row(tokens, batch["input_ids"][0].tolist(), batch["labels"][0].tolist()))
        return out


def swift(file: Path) -> list[dict[str, Any]]:
    """ms-swift: its loading and preprocessing of datasets, and its template of Qwen2.5 with agent template hermes."""
    import torch
    from swift.dataset import load_dataset
    from swift.template import get_template
    from transformers import Qwen2Config

    tokens = tokenizer()
    tokens.model_info = SimpleNamespace(
        config=Qwen2Config(),
        task_type="causal_lm",
        max_model_len=10_000_000,
        model_dir=".",
        torch_dtype=torch.float32,
        model_type="qwen2",
    )
    tokens.model_meta = SimpleNamespace(is_multimodal=False, template="qwen2_5", is_reward=False, model_type="qwen2")
    template = get_template(tokens, template_type="qwen2_5", agent_template="hermes")
    template.set_mode("train")
    rows, _ = load_dataset([str(file)], split_dataset_ratio=0.0, strict=True, load_from_cache_file=False)
    out = []
    for row in rows:
        encoded = template.encode(dict(row))
        out.append(token_row(tokens, list(encoded["input_ids"]), list(encoded["labels"])))
    return out


def slime(file: Path, loss_type: str) -> list[dict[str, Any]]:
    """slime: the mask code of the checkout at PRCHAIN_TEST_SLIME, on rows as its own reader hands them on."""
    place = Path(os.environ["PRCHAIN_TEST_SLIME"]) / "slime" / "utils" / "mask_utils.py"
    spec = importlib.util.spec_from_file_location("mask_utils", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tokens = tokenizer()
    generator = module.MultiTurnLossMaskGenerator(tokens, tokenizer_type=loss_type)
    out = []
    for row in slime_rows(file):
        assert isinstance(row["metadata"], dict)
        ids, mask = generator.get_loss_mask(row["messages"], tools=json.loads(row["tools"]))
        out.append(token_row(tokens, ids, [token if bit else -100 for token, bit in zip(ids, mask, strict=True)]))
    return out


def slime_rows(file: Path) -> list[dict[str, Any]]:
    """Lines of JSON, or rows of Parquet, as slime's `read_file` yields them."""
    if file.suffix == ".parquet":
        import pyarrow.parquet

        return [row for batch in pyarrow.parquet.ParquetFile(file).iter_batches() for row in batch.to_pylist()]
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]


def swift_arguments(_file: Path) -> list[list[Any]]:
    """The arguments of ms-swift's Megatron backend, read from its classes, which need Megatron to be imported."""
    place = Path(importlib.util.find_spec("swift").origin).parent
    sources = [*(place / "arguments").rglob("*.py"), *(place / "megatron" / "arguments").rglob("*.py")]
    return [[name, choices] for source in sources for name, choices in fields_of(source.read_text(encoding="utf-8"))]


def slime_arguments(_file: Path) -> list[list[Any]]:
    """The arguments of the checkouts of slime and Megatron-LM, read from their parsers, and from the classes that
    Megatron makes arguments of."""
    slime_place, megatron = (Path(os.environ[f"PRCHAIN_TEST_{name}"]) for name in ("SLIME", "MEGATRON"))
    parsers = [slime_place / "slime" / "utils" / "arguments.py", megatron / "megatron" / "training" / "arguments.py"]
    found = []
    for node in (node for file in parsers for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in ADDING:
            choices = [
                it.value for key in node.keywords if key.arg == "choices"
                for it in ast.walk(key.value) if isinstance(it, ast.Constant)
            ]  # fmt: skip
            names = [it.value for it in node.args if isinstance(it, ast.Constant) and isinstance(it.value, str)]
            found += [[name, choices] for name in names if name.startswith("--")]
    core = megatron / "megatron" / "core"
    classes = [
        *(megatron / "megatron" / "training" / "config").rglob("*.py"),
        core / "model_parallel_config.py",
        core / "optimizer" / "optimizer_config.py",
        core / "transformer" / "transformer_config.py",
    ]
    for file in classes:
        fields = fields_of(file.read_text(encoding="utf-8"))
        found += [[f"--{name.replace('_', '-')}", choices] for name, choices in fields]
    return found


ADDING = {"add_argument", "reset_arg"}


def fields_of(source: str) -> list[tuple[str, list[str]]]:
    """The annotated names in the classes of a module, each with the texts that its type lists."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    literals = [
                        part for part in ast.walk(field.annotation) if isinstance(part, ast.Subscript)
                        and isinstance(part.value, ast.Name) and part.value.id == "Literal"
                    ]  # fmt: skip
                    texts = [it.value for one in literals for it in ast.walk(one) if isinstance(it, ast.Constant)]
                    found.append((field.target.id, [text for text in texts if isinstance(text, str)]))
    return found


def datasets(file: Path) -> list[Any]:
    """`datasets` alone: the rows as its readers get them, without the nulls that it fills in."""
    return [without_nulls(row) for row in rows_of(file)]


def swebench(file: Path) -> list[dict[str, Any]]:
    """SWE-bench's harness: what it would grade of predictions, whose instances stand in ``instances.jsonl`` beside."""
    from swebench.harness.run_evaluation import get_dataset_from_preds
    from swebench.harness.utils import get_predictions_from_file, make_test_spec

    instances = str(file.with_name("instances.jsonl"))
    predictions = {it["instance_id"]: it for it in get_predictions_from_file(str(file), instances, "test")}
    found = get_dataset_from_preds(instances, "test", [], predictions, "run", False)
    specs = [make_test_spec(instance) for instance in found]
    return [{**predictions[it.instance_id], "tests": [*it.FAIL_TO_PASS], "image": it.image} for it in specs]


def harbor(file: Path) -> list[str | None]:
    """Harbor's classes: of each line, why it is no trajectory; None where it is one, and is written again as it was."""
    from harbor.models.trajectories import Trajectory

    found: list[str | None] = []
    for line in file.read_text(encoding="utf-8").split("\n"):
        if line:
            document = json.loads(line)
            try:
                again = Trajectory.model_validate(document).to_json_dict(exclude_none=False)
            except ValueError as error:
                found.append(str(error))
            else:
                same = without_nulls(again) == without_nulls(document)
                found.append(None if same else "written otherwise")
    return found


def trl_harbor(folder: Path) -> list[dict[str, Any]]:
    """TRL's spec: the rows of its training set, with the tools of an environment."""
    from trl.experimental.harbor import HarborSpec

    spec = HarborSpec(str(folder), agent="bash")
    environment = spec.environment_factory()
    return [{**row, "has_bash": callable(environment.bash)} for row in spec.train_dataset]


def verifiers_harbor(folder: Path) -> list[dict[str, Any]] | str:
    """verifiers' task set, which takes what is in its cache as it lies there: its tasks, or why it refuses them."""
    from verifiers.v1.tasksets.harbor import HarborConfig, HarborTaskset, taskset

    taskset.CACHE = folder.parent
    try:
        tasks = list(HarborTaskset(HarborConfig(dataset=folder.name)).load())
    except ValueError as error:
        return str(error)
    return [task.data.model_dump(mode="json") for task in tasks]


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


CONSUMERS = {
    "trl": trl,
    "trl-assistant": partial(trl, assistant_only_loss=True),
    "swift": swift,
    "slime-qwen": partial(slime, loss_type="qwen"),
    "slime-qwen3": partial(slime, loss_type="qwen3"),
    "slime-qwen3_5": partial(slime, loss_type="qwen3_5"),
    "swift-arguments": swift_arguments,
    "slime-arguments": slime_arguments,
    "datasets": datasets,
    "swebench": swebench,
    "harbor": harbor,
    "trl-harbor": trl_harbor,
    "verifiers-harbor": verifiers_harbor,
}


def main() -> None:
    read: Any = CONSUMERS[sys.argv[1]]
    print("\nRESULT " + json.dumps([read(Path(file)) for file in sys.argv[2:]], default=str))


if __name__ == "__main__":
    main()
