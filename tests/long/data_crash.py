#!/usr/bin/env python3
"""Tools of data that are killed (kill -9) at any moment, and that run out of disk: what stands under a final name is whole, and the same
command run again ends with the bytes of one that nobody disturbed.

    python3 -B tests/long/data_crash.py BLOOMERY [--kills 12] [--only NAME]

The full disks are small tmpfs and need root; without it they are left out."""
import argparse
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

WORDS = ("the of and to in a is that for it was on are as with his they at be this from have or by one had not but what all were when we "
         "there can an your which their said if do will each about how up out them then she many some so these would other into has").split()


# Tools that say that they are finished already, instead of a refusal to replace their results.
ENDS_AGAIN = {"clean", "filter", "dedup", "decontaminate"}


def make_inputs(program, folder):
    """Texts of three files with doublets, a dump of a wiki, a tokenizer and a corpus."""
    draw, lines = random.Random(3), []
    for i in range(9000):
        if i % 3 == 2:
            lines.append(lines[draw.randrange(len(lines))])
        else:
            text = "\n".join(" ".join(draw.choice(WORDS) for _ in range(draw.randrange(8, 30))) + "." for _ in range(draw.randrange(3, 9)))
            lines.append(json.dumps({"text": text, "url": f"http://site{i % 50}.org/{i}"}))
    for part in range(3):
        (folder / f"in{part}.jsonl").write_text("\n".join(lines[part::3]) + "\n")
    (folder / "tests.jsonl").write_text("\n".join(lines[:20]) + "\n")
    pages = "".join(f"<page><title>Page {i}</title><ns>0</ns><id>{i + 1}</id><revision><id>{i}</id><text>'''Page {i}''' is " + "[[a|b]] ".join(
        draw.choice(WORDS) for _ in range(150)) + "</text></revision></page>" for i in range(4000))
    (folder / "wiki.xml").write_text(f"<mediawiki><siteinfo><base>http://w.org/</base></siteinfo>{pages}</mediawiki>")
    program("tokenizer", "train", "--input", folder / "in0.jsonl", "--vocab-size", "400", "--output", folder / "tok")
    program("preprocess", "--input", folder / "in0.jsonl", "--tokenizer", folder / "tok", "--append-eod", "--output-prefix", folder / "corpus")


def commands(inputs):
    """Each tool: its arguments without the place of its output, the flag of that, and the place within a folder."""
    files = [inputs / f"in{part}.jsonl" for part in range(3)]
    tokenizer, corpus = ["--tokenizer", inputs / "tok"], inputs / "corpus_text_document"
    analyze = ["data", "analyze", "--analyzing-data-type", "GPT", *tokenizer, "--data-path", corpus, "--seq-length", 64, "--split", "100,0,0",
               "--analyzing-num-threads", 2, "--analyzing-metric", "total_vocab_freq"]
    return {
        "clean": (["data", "clean", "--input", *files], "--output", "out"),
        "filter": (["data", "filter", "--input", *files, "--rules", "gopher", "--languages", "en"], "--output", "out"),
        "dedup": (["data", "dedup", "--input", *files, "--memory", 16777216], "--output", "out"),
        "dedup exact": (["data", "dedup", "--input", *files, "--method", "exact"], "--output", "out"),
        "dedup paragraphs": (["data", "dedup", "--input", *files, "--method", "paragraphs"], "--output", "out"),
        "decontaminate": (["data", "decontaminate", "--input", *files, "--test-sets", inputs / "tests.jsonl"], "--output", "out"),
        "extract-wiki": (["data", "extract-wiki", "--input", inputs / "wiki.xml", "--bytes", 200000], "--output", "out"),
        "preprocess": (["preprocess", "--input", *files, *tokenizer, "--append-eod"], "--output-prefix", "out"),
        "preprocess in parts": (["preprocess", "--input", *files, *tokenizer, "--append-eod", "--partitions", 3], "--output-prefix", "out"),
        "analyze": (analyze + ["--analyzing-task", "map"], "--save", "out"),
        "merge": (["data", "merge", corpus, corpus], "--output-prefix", "out"),
        "split": (["data", "split", corpus, "--parts", 3], "--output-prefix", "out"),
        "tokenizer train": (["tokenizer", "train", "--input", *files, "--vocab-size", 600], "--output", "out"),
    }


class Program:
    def __init__(self, path):
        self.path = str(pathlib.Path(path).resolve())

    def start(self, *arguments):
        return subprocess.Popen([self.path, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def __call__(self, *arguments, expected=0):
        process = self.start(*arguments)
        said = process.communicate()[0]
        assert process.returncode == expected, f"exit code {process.returncode} instead of {expected}: {said[-1500:]}"
        return said


def results(folder):
    """Name -> digest of what a tool leaves. Reports have times in them, and a file that says how far a tool came is no result."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and not is_unfinished(path):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def is_unfinished(path):
    """What no user takes for a result: hidden files, temporary ones, what is known of a run."""
    return path.name == "report.json" or any(part.startswith(".") or part.endswith((".partial", ".progress", "-work")) or ".tmp" in part
                                             for part in path.parts[-3:])


def at_the_end(process, out, draw):
    """Waits until a result has its name, or the report is there."""
    awaited = draw.choice([lambda path: path.name == "report.json", lambda path: not is_unfinished(path)])
    while process.poll() is None:
        names = [pathlib.Path(folder) / name for folder, _, files in os.walk(out) for name in files]
        if any(map(awaited, names)):
            break
    time.sleep(draw.choice([0, 0.0003, 0.001, 0.003]))


def kills(program, name, command, whole, seconds, folder, count, draw):
    """After each kill what is there under a final name has the bytes that it ends with; then it ends with all of them. Every other kill
    comes when results get their names, or while the tool clears up."""
    arguments, flag, place = command
    killed = rounds = 0
    ends_again = name.split()[0] in ENDS_AGAIN
    while killed < count and rounds < 4 * count:
        out = pathlib.Path(tempfile.mkdtemp(dir=folder))
        rounds += 1
        for _ in range(3):
            process = program.start(*arguments, flag, out / place)
            if killed % 2:
                at_the_end(process, out, draw)
            else:
                time.sleep(draw.uniform(0, 1.1 * seconds))
            process.kill()
            process.communicate()
            killed += process.returncode == -9
            for path, digest in results(out).items():
                assert whole.get(path) == digest, f"{name}: {path} is there after a kill, half-written or not of the end"
            if process.returncode == 0 or (results(out) == whole and not ends_again):  # it was done, and would refuse to do it again
                break
        else:
            program(*arguments, flag, out / place)
        assert results(out) == whole, f"{name}: other results after kills"
        shutil.rmtree(out)
    return killed


def full_disk(program, name, command, whole, size, folder):
    """Half the room: exit code 1 with a message, no half-written results; with room it ends as ever."""
    arguments, flag, place = command
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={max(size // 2, 8192) // 4096 * 4096}", "tmpfs", disk], check=True)
    try:
        said = program(*arguments, flag, disk / place, expected=1)
        assert "space" in said or "full" in said or "free" in said, said[-500:]
        for path, digest in results(disk).items():
            assert whole.get(path) == digest, f"{name}: {path} is there on a full disk, half-written"
        subprocess.run(["mount", "-o", f"remount,size={64 * size + (64 << 20)}", disk], check=True)
        program(*arguments, flag, disk / place)
        assert results(disk) == whole, f"{name}: other results after a full disk"
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
        disk.rmdir()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    program, draw, failures = Program(a.program), random.Random(1), 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        make_inputs(program, folder)
        for name, command in commands(folder).items():
            if a.only not in name:
                continue
            out = folder / "whole"
            out.mkdir()
            begin = time.time()
            program(*command[0], command[1], out / command[2])
            seconds, whole = time.time() - begin, results(out)
            size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
            shutil.rmtree(out)
            try:
                killed = kills(program, name, command, whole, seconds, folder, a.kills, draw)
                if os.geteuid() == 0:
                    full_disk(program, name, command, whole, size, folder)
                print(f"{name}: {killed} kills{', a full disk' if os.geteuid() == 0 else ''}, {len(whole)} results as ever", flush=True)
            except AssertionError as error:
                failures += 1
                print(f"{name}: FAILED: {error}", flush=True)
    sys.exit(f"{failures} failed" if failures else 0)


main()
