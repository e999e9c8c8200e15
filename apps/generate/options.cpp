#include "apps/generate/options.h"

namespace bloomery {
namespace {

void describe_prompts(OptionTable& t, GenerateCommand& o) {
  t.section("prompts");
  t.add(
      "prompt", o.prompts,
      "Prompts. Without --prompt and --prompt-file: unconditional samples with --num-samples above "
      "0, otherwise prompts from the terminal.");
  t.add("prompt-file", o.prompt_file, "File with one prompt per line.").alias("sample-input-file");
  t.add("num-samples", o.num_samples,
        "Samples per prompt; with beam search the best beams. 0: one for each prompt of the file, "
        "and without a file prompts from the terminal until one says stop.",
        at_least(0));
}

void describe_choice(OptionTable& t, GenerateOptions& o, std::int64_t& seed) {
  t.section("sampling");
  t.add("out-seq-length", o.max_new_tokens,
        "Maximum new tokens. A model with learned positions stops at its last position.",
        at_least(1))
      .alias("max-new-tokens")
      .alias("tokens-to-generate");
  SamplingOptions& s = o.sampling;
  t.add("greedy", s.greedy, "Use greedy decoding.");
  t.add("temperature", s.temperature, "Sampling temperature; 0: greedy decoding.", at_least(0));
  t.add("top-k", s.top_k, "Sample from the k likeliest tokens; 0: all.", at_least(0));
  t.add("top-p", s.top_p,
        "Nucleus sampling: the likeliest tokens whose probabilities sum to p; 0: all.",
        between(0, 1));
  t.add("repetition-penalty", s.repetition_penalty,
        "Repetition penalty: divides positive logits of tokens that occurred, and multiplies "
        "negative ones; 1: none.",
        above(0));
  t.add("frequency-penalty", s.frequency_penalty,
        "Frequency penalty: subtracted from a token's logit for each time it was sampled.",
        between(-2, 2));
  t.add("presence-penalty", s.presence_penalty,
        "Presence penalty: subtracted once from the logits of sampled tokens.", between(-2, 2));
  t.add("seed", seed,
        "Random seed. A text depends on the seed, the number of the prompt and the number of the "
        "sample.",
        at_least(0));
  t.add("num-beams", o.num_beams, "Number of beams; above 1: beam search instead of sampling.",
        between(1, 4096))
      .alias("beam-width");
  t.add("length-penalty", o.length_penalty,
        "Length penalty of beam search: beams are ranked by log-probability / length^penalty.");
  t.add("stop", o.stops, "Stop strings; they are not part of the result.");
}

}  // namespace

void describe(OptionTable& t, GenerateCommand& o) {
  describe_prompts(t, o);
  describe_choice(t, o.generate, o.seed);
  t.section("output");
  t.add("json", o.json,
        "Print one JSON object per line: prompt, text, ids, logprobs, finish (eod, stop, length or "
        "positions) and more.");
  t.add(
      "genfile", o.genfile,
      "Write the JSON objects to this file instead of text to the terminal; with prompts from the "
      "terminal to both.");
  t.add("sample-output-file", o.sample_output_file,
        "Write prompts and texts to this file, in Megatron's format.");
  t.section("computation");
  t.add("batch-size", o.batch_size, "Maximum concurrent sequences.", between(1, 65536))
      .alias("micro-batch-size");
  t.add("recompute", o.generate.recompute,
        "Recompute the whole text for every token instead of using a KV cache: slower, the same "
        "result.");
}

std::vector<std::string> contradictions(const OptionTable& table, const GenerateCommand& o) {
  std::vector<std::string> found;
  const bool beams = o.generate.num_beams > 1;
  for (const char* flag :
       {"temperature", "top-k", "top-p", "frequency-penalty", "presence-penalty"}) {
    if (beams && table.given(flag)) {
      found.push_back(concat("--", flag, " is for sampling, but --num-beams asks for beam search"));
    }
  }
  if (beams && o.samples_per_prompt() > o.generate.num_beams) {
    found.push_back(concat("--num-samples ", o.samples_per_prompt(), " of --num-beams ",
                           o.generate.num_beams, ": beam search has at most one result per beam"));
  }
  if (!o.prompts.empty() && !o.prompt_file.empty()) {
    found.emplace_back("--prompt and --prompt-file cannot be given together");
  }
  for (const std::string& stop : o.generate.stops) {
    if (stop.empty()) {
      found.emplace_back("--stop '' would end every text at once");
    }
  }
  if (o.interactive() && !o.num_samples && !(o.genfile.empty() && o.sample_output_file.empty())) {
    found.emplace_back(
        "--genfile and --sample-output-file need prompts or --num-samples (0: prompts "
        "from the terminal)");
  }
  return found;
}

}  // namespace bloomery
