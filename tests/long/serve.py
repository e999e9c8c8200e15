#!/usr/bin/env python3
"""`bloomery serve` beside the programs that people use with such servers: the openai package and
lm_eval, whose scores over HTTP must be those of its own transformers backend.

    serve.py BLOOMERY      (with openai, lm_eval, transformers and torch)
"""
import json
import math
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

WORDS = "the a cat dog bird fish sees likes eats finds red green blue big small house tree river and then".split()


def sentences(rng, count):
    """Half of them end in words that a model can learn to expect."""
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(6, 14))) + rng.choice([" far away.", "."]) for _ in range(count)]


def make_tokenizer(folder, texts, bos):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.chat_template = ("{% for m in messages %}<s>{{ m.role }}\n{{ m.content }}</s>{% endfor %}"
                          "{% if add_generation_prompt %}<s>assistant\n{% endif %}")
    fast.save_pretrained(folder)
    return fast


def make_model(kind, folder, tokenizer, texts):
    """A small model, trained for a moment, so that probabilities differ."""
    torch.manual_seed(5)
    shared = dict(vocab_size=400, bos_token_id=0, eos_token_id=1)
    if kind == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_positions=128, n_embd=64, n_layer=2, n_head=4, **shared))
    else:
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=128, **shared))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    rng = random.Random(1)
    for _ in range(60):
        batch = [tokenizer(" ".join(rng.sample(texts, 4)))["input_ids"][:48] for _ in range(8)]
        length = min(map(len, batch))
        ids = torch.tensor([row[:length] for row in batch])
        loss = model(ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval().save_pretrained(folder)
    return model


class Server:
    def __init__(self, program, folder):
        self.process = subprocess.Popen([program, "serve", "--load", folder, "--port", "0", "--device", "cpu", "--num-threads", "2",
                                         "--served-model-name", "tiny"], stdout=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+)$", self.process.stdout.readline().strip())[1])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=60) == 0


def greedy(model, tokenizer, ids, count):
    out = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=count, pad_token_id=1)[0]
    return tokenizer.decode([i for i in out[len(ids):] if i != 1])


def check_openai(server, model, tokenizer, texts):
    import openai
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none")
    assert [one.id for one in client.models.list()] == ["tiny"]
    for text in texts[:6]:
        ids = tokenizer(text)["input_ids"]
        expected = greedy(model, tokenizer, ids, 12)
        for prompt in (text, ids):
            one = client.completions.create(model="tiny", prompt=prompt, max_tokens=12, temperature=0)
            assert one.choices[0].text == expected, (one.choices[0].text, expected)
            assert one.usage.prompt_tokens == len(ids)
        pieces = client.completions.create(model="tiny", prompt=text, max_tokens=12, temperature=0, stream=True)
        assert "".join(piece.choices[0].text for piece in pieces) == expected
        messages = [{"role": "user", "content": text}]
        asked = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True)
        asked = list(asked["input_ids"] if hasattr(asked, "keys") else asked)
        expected = greedy(model, tokenizer, asked, 10)
        chat = client.chat.completions.create(model="tiny", messages=messages, max_tokens=10, temperature=0, logprobs=True,
                                              top_logprobs=3)
        assert chat.choices[0].message.content == expected, (chat.choices[0].message.content, expected)
        assert chat.usage.prompt_tokens == len(asked), (chat.usage, asked)
        assert len(chat.choices[0].logprobs.content[0].top_logprobs) == 3
        pieces = client.chat.completions.create(model="tiny", messages=messages, max_tokens=10, temperature=0, stream=True,
                                                stream_options={"include_usage": True})
        pieces = list(pieces)
        assert "".join(p.choices[0].delta.content or "" for p in pieces if p.choices) == expected
        assert pieces[-1].usage.completion_tokens >= 1
    scored = client.completions.create(model="tiny", prompt=texts[0], max_tokens=0, echo=True, logprobs=1).choices[0]
    ids = tokenizer(texts[0])["input_ids"]
    with torch.no_grad():
        logs = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1)
    for i in range(1, len(ids)):
        assert math.isclose(scored.logprobs.token_logprobs[i], logs[i - 1, ids[i]].item(), abs_tol=1e-4)
    try:
        client.completions.create(model="other", prompt="a")
        raise AssertionError("an unknown model was served")
    except openai.NotFoundError as error:
        assert error.code == "model_not_found" and error.param == "model"
    try:
        client.completions.create(model="tiny", prompt="a", max_tokens=5000)
        raise AssertionError("a text longer than the model's positions was promised")
    except openai.BadRequestError as error:
        assert error.code == "context_length_exceeded"


def write_tasks(folder, texts, rng):
    """A multiple-choice task and one in the manner of LAMBADA: the last word of a sentence."""
    choices = [{"question": t.rsplit(" ", 3)[0], "choices": [" " + " ".join(rng.choice(WORDS) for _ in range(3)) for _ in range(4)],
                "answer": rng.randrange(4)} for t in texts[:40]]
    (folder / "choices.jsonl").write_text("\n".join(map(json.dumps, choices)))
    (folder / "words.jsonl").write_text("\n".join(json.dumps({"text": t[:-1]}) for t in texts[40:80]))
    head = "dataset_path: json\ndataset_kwargs:\n  data_files:\n    test: %s\ntest_split: test\n"
    (folder / "tiny_choices.yaml").write_text("task: tiny_choices\n" + head % (folder / "choices.jsonl") + (
        "output_type: multiple_choice\ndoc_to_text: '{{question}}'\ndoc_to_choice: '{{choices}}'\ndoc_to_target: '{{answer}}'\n"
        "target_delimiter: ''\nmetric_list:\n- metric: acc\n- metric: acc_norm\n"))
    (folder / "tiny_words.yaml").write_text("task: tiny_words\n" + head % (folder / "words.jsonl") + (
        "output_type: loglikelihood\ndoc_to_text: '{{text.split(\" \")[:-1]|join(\" \")}}'\n"
        "doc_to_target: '{{\" \"+text.split(\" \")[-1]}}'\ntarget_delimiter: ''\nmetric_list:\n- metric: perplexity\n- metric: acc\n"))


def scores(backend, arguments, folder):
    import lm_eval
    import lm_eval.tasks
    manager = lm_eval.tasks.TaskManager(include_path=str(folder), include_defaults=False)
    found = lm_eval.simple_evaluate(model=backend, model_args=arguments, tasks=["tiny_choices", "tiny_words"], task_manager=manager,
                                    batch_size=1, bootstrap_iters=0, log_samples=False)["results"]
    return {(task, name): value for task, row in found.items() for name, value in row.items()
            if isinstance(value, float) and "stderr" not in name}


def main():
    program = os.path.abspath(sys.argv[1])
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", OPENAI_API_KEY="none", TOKENIZERS_PARALLELISM="false")
    rng = random.Random(3)
    texts = sentences(rng, 200)
    for kind in ("gpt2", "llama"):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            tokenizer = make_tokenizer(folder / "model", texts, "<s>")
            model = make_model(kind, folder / "model", tokenizer, texts)
            write_tasks(folder, texts, rng)
            server = Server(program, folder / "model")
            try:
                check_openai(server, model, tokenizer, texts)
                ours = scores("local-completions", f"model=tiny,base_url=http://127.0.0.1:{server.port}/v1/completions,"
                              f"tokenizer={folder / 'model'},tokenizer_backend=huggingface,num_concurrent=4,max_length=128", folder)
                theirs = scores("hf", f"pretrained={folder / 'model'},dtype=float32,device=cpu,max_length=128", folder)
            finally:
                server.stop()
            assert set(ours) == set(theirs) and len(ours) >= 4, (ours, theirs)
            for key, value in theirs.items():
                assert math.isclose(ours[key], value, rel_tol=1e-4), (key, ours[key], value)
            assert 0 < ours["tiny_words", "acc,none"] < 1, ours
            print(f"serve: {kind}: " + ", ".join(f"{task} {metric} {value:.4f}" for (task, metric), value in ours.items()))


main()
