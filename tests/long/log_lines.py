#!/usr/bin/env python3
"""What a run prints and writes, read as users' scripts read it: every line of standard output has a known format,
TensorBoard loads the events, metrics.jsonl says the same numbers, and a browser shows report.html.

    build/oracle/bin/python tests/long/log_lines.py BLOOMERY [--device cuda] [--screenshot FILE.png]"""
import argparse
import json
import math
import pathlib
import re
import shutil
import sys
import tempfile

from training import SHARED_DATA, Program, make_stories, tiny

REAL_LINES = SHARED_DATA / "logs/bigscience-megatron-iteration-lines.txt"
DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d "
EXPONENT = r"-?\d\.\d{6}E[+-]\d\d"
# Fields of an iteration line: name -> how its value is written, the blanks of its width included.
FIELDS = {
    "consumed samples": r"[ \d]{11}\d", "consumed tokens": r"[ \d]{11}\d", "elapsed time per iteration (ms)": r"\d+\.\d",
    "throughput per GPU (TFLOP/s/GPU)": r"\d+\.\d", "learning rate": r"\d\.\d{3}E[+-]\d\d", "global batch size": r"[ \d]{4}\d",
    "lm loss": EXPONENT, "loss scale": r"\d+\.\d", "grad norm": r"\d+\.\d{3}", "num zeros": r"\d+\.\d",
    "params norm": r"\d+\.\d{3}", "actual seqlen": r"[ \d]{4}\d", "number of skipped iterations": r"[ \d]{2}\d",
    "number of nan iterations": r"[ \d]{2}\d", "samples per second": r"\d+\.\d{3}",
    "tokens per gpu per second (tgs)": r"\d+\.\d{3}", "TFLOPs": r"\d+\.\d\d",
}
DEEPSPEED = ["consumed samples", "consumed tokens", "elapsed time per iteration (ms)", "learning rate", "global batch size",
             "lm loss", "loss scale", "grad norm", "num zeros", "params norm", "actual seqlen", "number of skipped iterations",
             "number of nan iterations", "samples per second", "tokens per gpu per second (tgs)", "TFLOPs"]
NVIDIA = ["consumed samples", "elapsed time per iteration (ms)", "throughput per GPU (TFLOP/s/GPU)", "learning rate",
          "global batch size", "lm loss", "loss scale", "grad norm", "number of skipped iterations", "number of nan iterations"]
# Lines of a run in the order in which they must first appear.
START = [
    r"using world size: 1, data-parallel-size: 1, sequence-parallel size: 1, tensor-model-parallel size: 1, "
    r"pipeline-model-parallel size: 1 ",
    r"using torch\.(float16|bfloat16|float32) for parameters \.\.\.",
    r"-{24} arguments -{24}", r"-{20} end of arguments -{20}-",
    r"setting number of micro-batches to constant \d+",
    r"> building GPT2BPETokenizer tokenizer \.\.\.",
    r" > padded vocab \(size: \d+\) with \d+ dummy tokens \(new size: \d+\)",
    r"> initialized tensor model parallel with size 1", r"> initialized pipeline model parallel with size 1",
    r"> setting random seeds to 1234 \.\.\.",
    r"time to initialize megatron \(seconds\): \d+\.\d{3}",
    r"\[after megatron is initialized\] datetime: " + DATE,
    r" > number of parameters on \(tensor, pipeline\) model parallel rank \(0, 0\): \d+",
    r"> learning rate decay style: cosine",
    r" > datasets target sizes \(minimum size\):", r"    train:      \d+", r"    validation: \d+", r"    test:       \d+",
    r"done with setup \.\.\.", r"training \.\.\.", r"\[before the start of training step\] datetime: " + DATE,
]
# Further lines that Megatron prints, wherever they come.
OTHERS = [
    r"  \w+ \.+ .*", r"", r"-+", r"building GPT model \.\.\.", r"> building train, validation, and test datasets \.\.\.",
    r"> finished creating GPT datasets \.\.\.", r"setting training iterations to \d+",
    r"\[(after|before) [^\]]+\] datetime: " + DATE,
    r"\[exiting program at iteration \d+\] datetime: " + DATE,
    r" validation loss at iteration \d+ \| lm loss value: " + EXPONENT + r" \| lm loss PPL: " + EXPONENT + r" \| ",
    r" validation loss at iteration \d+ on \d+-sample draw from (validation|test) set \| lm loss value: " + EXPONENT +
    r" \| lm loss PPL: " + EXPONENT + r" \| ",
    r"\[Rank 0\] \(after \d+ iterations\) memory \(MB\) \| allocated: [\d.]+ \| max allocated: [\d.]+ \| reserved: [\d.]+ "
    r"\| max reserved: [\d.]+",
    r"saving checkpoint at iteration [ \d]{6}\d to .+", r"  successfully saved checkpoint at iteration [ \d]{6}\d to .+",
    r"Checkpoint Save GB: [\d.e-]+, GB/Sec: [\d.e-]+, Latency\(second\): [\d.e-]+",
    r" loading checkpoint from .+ at iteration \d+", r" checkpoint version 3\.0",
    r"  successfully loaded checkpoint from .+ at iteration \d+",
    r"WARNING: could not find the metadata file .+ ", r"    will not load any checkpoints and will start from random",
    r"\(min, max\) time across ranks \(ms\):", r"    [a-z/-]+ \.*: \(\d+\.\d\d, \d+\.\d\d\)",
    r"will use batch size rampup starting from global batch size \d+ to global batch size \d+ with batch size increments \d+ "
    r"over \d+ samples\.",
    r"curves of this run: .+/report\.html",  # ours
]
TIMERS = ["model-and-optimizer-setup", "train/valid/test-data-iterators-setup", "save-checkpoint", "forward-backward",
          "optimizer", "forward-compute", "backward-compute", "batch-generator"]
THREE_AXES = ["learning-rate/learning-rate", "batch-size/batch-size", "lm-loss-training/lm loss", "loss-scale/loss-scale",
              "world-size/world-size", "grad-norm/grad-norm", "num-zeros/num-zeros", "params-norm/params-norm",
              "seqlen/actual_seq_length", "iteration-time/iteration-time", "lm-loss-validation/lm loss validation",
              "lm-loss-validation/lm loss validation ppl"]
ONE_AXIS = ["steps-vs-samples/y=steps,x=samples", "steps-vs-samples/y=samples,x=steps", "steps-vs-tokens/y=steps,x=tokens",
            "steps-vs-tokens/y=tokens,x=steps", "mem-reserved-bytes", "mem-allocated-bytes"]
OPTIMIZER = [f"optimizer/{what}_{norm}" for what in ("variance", "variance_sqrt", "momentum", "weight")
             for norm in ("l2", "l1", "abs_max")]


def iteration_fields(line):
    """Names and raw values of an iteration line, or nothing."""
    if not re.match(r" iteration [ \d]{7}\d/[ \d]{7}\d \|", line):
        return None
    parts = line.rstrip(" ").split(" | ")[1:]
    parts[-1] = parts[-1].removesuffix(" |")
    return [part.strip().rsplit(": ", 1)[0] for part in parts], [part.split(": ", 1)[1] for part in parts]


def check_iteration_line(line, wanted):
    names, values = iteration_fields(line)
    assert line.endswith(" |"), repr(line)
    for name, value in zip(names, values):
        assert re.fullmatch(FIELDS[name], value), f"{name} is written {value!r} in\n{line}"
    skipped = int(values[names.index("number of skipped iterations")]) > 0
    expected = [name for name in wanted if not (skipped and name in ("lm loss", "grad norm", "num zeros"))]
    assert names == expected, f"fields {names} instead of {expected}"


def check_real_lines():
    """The formats above are those of real logs: every field of every real line with these names fits."""
    count = 0
    for line in REAL_LINES.read_text().splitlines():
        if fields := iteration_fields(line):
            names = [name.replace("-", " ") for name in fields[0]]  # old releases write lm-loss
            for name, value in zip(names, fields[1]):
                negative = value == "-1.0" and name == "loss scale"  # DeepSpeed without a scaler
                assert negative or re.fullmatch(FIELDS[name], value), f"{name}: {value!r} in a real line"
            names = [name for name in names if name != "num zeros"]
            if "consumed samples" in names and "lm loss" in names:
                assert names == [n for n in NVIDIA if n in names], names
            count += 1
    return count


def check_all_lines(run, wanted, start=True):
    """Each line of standard output is known, and those of start-up come in order."""
    lines = run.out.splitlines()
    patterns = [re.compile(p) for p in START + OTHERS]
    unknown = [line for line in lines if not iteration_fields(line) and not any(p.fullmatch(line) for p in patterns)]
    assert not unknown, "lines of no known format:\n" + "\n".join(unknown[:20])
    for line in lines:
        if iteration_fields(line):
            check_iteration_line(line, wanted)
    at = 0
    for pattern in START if start else []:
        found = [i for i in range(at, len(lines)) if re.fullmatch(pattern, lines[i])]
        assert found, f"no line {pattern!r} after line {at}: {lines[at - 1]!r}"
        at = found[0]
    for i, line in enumerate(lines):
        if line.startswith(" validation loss"):
            assert lines[i - 1] == lines[i + 1] == "-" * (len(line) + 1), "\n".join(lines[i - 1:i + 2])
    return len(lines)


def check_tensorboard(folder, rows):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    tags = set(events.Tags()["scalars"])
    expected = {tag + axis for tag in THREE_AXES for axis in ("", " vs samples", " vs tokens")} | set(ONE_AXIS)
    expected |= {tag + axis for tag in OPTIMIZER for axis in ("", " vs tokens")}
    assert expected <= tags, f"missing in TensorBoard: {sorted(expected - tags)}"
    scalars = {event.step: event.value for event in events.Scalars("lm-loss-training/lm loss")}
    for row in rows:
        if row["kind"] == "train" and row.get("lm_loss") is not None:
            assert math.isclose(scalars[row["iteration"]], row["lm_loss"], rel_tol=1e-6), row
    samples = [event.step for event in events.Scalars("lm-loss-training/lm loss vs samples")]
    assert samples == sorted(samples)
    texts = events.Tags()["tensors"]
    assert any("num_layers" in text for text in texts), texts[:5]
    return len(tags), sorted(tags - expected)


def check_metrics(run, folder):
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    trained = {row["iteration"]: row for row in rows if row["kind"] == "train"}
    lines = run.iterations()
    assert sorted(trained) == sorted(lines), f"{sorted(trained)[:5]} and {sorted(lines)[:5]}"
    names = {"consumed samples": "samples", "consumed tokens": "tokens", "learning rate": "learning_rate",
             "global batch size": "global_batch_size", "lm loss": "lm_loss", "loss scale": "loss_scale",
             "grad norm": "grad_norm", "num zeros": "num_zeros", "params norm": "params_norm",
             "number of skipped iterations": "skipped_iterations", "number of nan iterations": "nan_iterations"}
    for iteration, fields in lines.items():
        for field, name in names.items():
            if field in fields:
                assert math.isclose(float(fields[field]), trained[iteration][name], rel_tol=6e-4, abs_tol=6e-4), \
                    f"iteration {iteration}: {field} {fields[field]}, {name} {trained[iteration][name]}"
    assert len([r for r in rows if r["kind"] == "validation"]) == len([e for e in run.evaluations() if "test set" not in e])
    return rows


def check_report(path, screenshot):
    """Opens in a browser without errors, asks the network for nothing, and has drawn curves."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        return "report.html: not looked at, because there is no playwright"
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        except Error:
            return "report.html: not looked at, because playwright has no browser"
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        complaints, requests = [], []
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.resolve().as_uri())
        assert not complaints, complaints
        assert requests == [path.resolve().as_uri()], requests
        plots = page.locator("svg").count()
        text = page.inner_text("body").lower()
        for word in ("loss", "learning rate", "gradient norm", "tokens", "memory"):
            assert word in text, f"no {word!r} in the report"
        assert plots >= 5, f"{plots} plots"
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"the page is {overflow} pixels too wide"
        if screenshot:
            page.screenshot(path=screenshot, full_page=True)
        browser.close()
    return f"report.html: {plots} plots"


def megatron_deepspeed_run(program, corpus, folder, screenshot):
    options = dict(train_iters=40, save_interval=20, eval_interval=10, fp16=True, loss_scale_window=10, save=folder / "save",
                   load=folder / "save", tensorboard_dir=folder / "events", log_params_norm=True, log_num_zeros_in_grad=True,
                   timing_log_level=2, log_timers_to_tensorboard=True, log_batch_size_to_tensorboard=True,
                   log_validation_ppl_to_tensorboard=True, log_world_size_to_tensorboard=True, log_memory_to_tensorboard=True,
                   log_optimizer_states_to_tensorboard=True)
    run = program.pretrain(*tiny(corpus, **options))
    count = check_all_lines(run, DEEPSPEED)
    for name in TIMERS:
        assert re.search(rf"^    {re.escape(name)} \.+: \(", run.out, re.M), f"no timer {name}"
    assert "[Rank 0] (after" in run.out and "will start from random" in run.out
    assert "successfully saved checkpoint at iteration      40" in run.out
    skipped = [fields for fields in run.iterations().values() if fields["number of skipped iterations"].strip() == "1"]
    assert skipped, "an fp16 run from 2^32 skips its first steps"
    rows = check_metrics(run, folder / "save")
    tags, more = check_tensorboard(folder / "events", rows)
    print(f"Megatron-DeepSpeed's format: {count} lines, {tags} scalars in TensorBoard, {len(more)} of them ours: {more[:6]}")
    print(check_report(folder / "save/report.html", screenshot))
    resumed = program.pretrain(*tiny(corpus, **{**options, "train_iters": 44, "override_opt_param_scheduler": True}))
    check_all_lines(resumed, DEEPSPEED)
    assert resumed.loaded_iteration() == 40


def other_runs(program, corpus, folder):
    run = program.pretrain(*tiny(corpus, log_format="nvidia", log_throughput=True, bf16=True))
    print(f"Megatron-LM's format: {check_all_lines(run, NVIDIA)} lines")
    assert all(fields["loss scale"] == "1.0" for fields in run.iterations().values())
    run = program.pretrain(*tiny(corpus, train_iters=None, train_samples=80, rampup_batch_size=[4, 4, 40],
                                 global_batch_size=12))
    plain = [name for name in DEEPSPEED if name not in ("num zeros", "params norm")]
    print(f"ramp-up: {check_all_lines(run, plain, start=False)} lines")
    assert "will use batch size rampup starting from global batch size 4 to global batch size 12" in run.out
    run = program.pretrain(*tiny(corpus, log_interval=5, exit_interval=7), expected=75)
    assert sorted(run.iterations()) == [5] and "[exiting program at iteration 7]" in run.out
    run = program.pretrain(*tiny(corpus, timing_log_level=1, timing_log_option="all"))
    assert re.search(r"^times across ranks \(ms\):\n  [a-z/-]+:\n     rank  0: \d+\.\d\d$", run.out, re.M)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--screenshot")
    a = parser.parse_args()
    program = Program(a.program, a.device)
    if REAL_LINES.exists():
        print(f"{check_real_lines()} lines of real logs have the formats of this test")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        corpus = make_stories(program, folder)
        for part in (lambda *args: megatron_deepspeed_run(*args, a.screenshot), other_runs):
            try:
                part(program, corpus, pathlib.Path(folder))
            except AssertionError as error:
                failures += 1
                print(f"FAILED: {error}", flush=True)
    sys.exit(f"{failures} failed" if failures else 0)


main()
