#include "apps/generate/options.h"

namespace bloomery {
namespace {

void describe_prompts(OptionTable& t, GenerateCommand& o) {
  t.section("prompts");
  t.add("prompt", o.prompts,
        "Texts to continue. Without these and --prompt-file: with --num-samples texts from "
        "nothing, else a dialogue on the terminal.");
  t.add("prompt-file", o.prompt_file, "A file with one prompt per line.")
      .alias("sample-input-file");
  t.add("num-samples", o.num_samples,
        "Texts for each prompt (with beam search the best ones), or without a prompt.",
        at_least(0));
}

void describe_choice(OptionTable& t, GenerateOptions& o, std::int64_t& seed) {
  t.section("choice of tokens");
  t.add("out-seq-length", o.max_new_tokens,
        "New tokens at most. A model with learned positions stops at its last one.", at_least(1))
      .alias("max-new-tokens")
      .alias("tokens-to-generate");
  SamplingOptions& s = o.sampling;
  t.add("greedy", s.greedy, "Always the likeliest token.");
  t.add("temperature", s.temperature, "Logits are divided by it; 0 is greedy.", at_least(0));
  t.add("top-k", s.top_k, "Only the k likeliest tokens; 0: all.", at_least(0));
  t.add("top-p", s.top_p, "Only the likeliest tokens with this probability together; 0: all.",
        between(0, 1));
  t.add("repetition-penalty", s.repetition_penalty,
        "Logits of tokens that occurred are divided by it if positive, else multiplied; 1: no "
        "penalty.",
        above(0));
  t.add("frequency-penalty", s.frequency_penalty,
        "Taken from the logit of a token for each time that it was drawn; less than 0 makes "
        "repetition likelier.",
        between(-2, 2));
  t.add("presence-penalty", s.presence_penalty,
        "Taken once from the logits of tokens that were drawn.", between(-2, 2));
  t.add("seed", seed,
        "A text depends on the seed, the number of its prompt and its number among the samples of "
        "the prompt.",
        at_least(0));
  t.add("num-beams", o.num_beams, "More than one: beam search instead of sampling.",
        between(1, 4096))
      .alias("beam-width");
  t.add("length-penalty", o.length_penalty,
        "Beams are compared by log-probability / length^penalty.");
  t.add("stop", o.stops, "Texts that end generation; they are not part of the result.");
}

}  // namespace

void describe(OptionTable& t, GenerateCommand& o) {
  describe_prompts(t, o);
  describe_choice(t, o.generate, o.seed);
  t.section("output");
  t.add("json", o.json,
        "One JSON object per line: prompt, text, ids, logprobs (of the model, for each id), "
        "finish (eod, stop, length or positions) and more.");
  t.add("genfile", o.genfile, "Write these objects to a file instead of texts to the terminal.");
  t.add("sample-output-file", o.sample_output_file,
        "Write prompts and texts to a file, in blocks as Megatron does.");
  t.section("computation");
  t.add("batch-size", o.batch_size, "Texts made together.", between(1, 65536))
      .alias("micro-batch-size");
  t.add("recompute", o.generate.recompute,
        "Compute whole texts for every token instead of keeping keys and values: slower, the same "
        "result.");
  describe(t, o.ranks);
  describe(t, o.model);
}

std::vector<std::string> contradictions(const OptionTable& table, const GenerateCommand& o) {
  std::vector<std::string> found = contradictions(o.ranks);
  const bool beams = o.generate.num_beams > 1;
  for (const char* flag :
       {"temperature", "top-k", "top-p", "frequency-penalty", "presence-penalty"}) {
    if (beams && table.given(flag)) {
      found.push_back(concat("--", flag, " is for sampling, but --num-beams asks for beam search"));
    }
  }
  if (beams && o.samples_per_prompt() > o.generate.num_beams) {
    found.push_back(concat("--num-samples ", o.samples_per_prompt(), " of --num-beams ",
                           o.generate.num_beams, ": there are only as many results as beams"));
  }
  if (!o.prompts.empty() && !o.prompt_file.empty()) {
    found.emplace_back("--prompt and --prompt-file cannot be given together");
  }
  for (const std::string& stop : o.generate.stops) {
    if (stop.empty()) {
      found.emplace_back("--stop '' would end every text at once");
    }
  }
  if (o.interactive() && !(o.genfile.empty() && o.sample_output_file.empty())) {
    found.emplace_back(
        "--genfile and --sample-output-file need prompts or --num-samples: a dialogue goes to the "
        "terminal");
  }
  return found;
}

}  // namespace bloomery
