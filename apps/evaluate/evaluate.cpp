#include "apps/evaluate/evaluate.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/common/model_command.h"
#include "apps/common/progress_line.h"
#include "apps/evaluate/retriever.h"
#include "evaluate/lambada.h"
#include "evaluate/logits.h"
#include "evaluate/perplexity.h"
#include "models/family.h"
#include "text/input/python_text.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

enum class Task { perplexity, wikitext, lambada, logits, retriever };

struct EvaluateOptions : ModelStart {
  Task task = Task::perplexity;
  std::string valid_data, ids, decoder_ids, output;
  PerplexityOptions perplexity;
  RetrieverTask retriever;
  bool strict_lambada = false, json = false;
  std::int64_t log_interval = 100;
  bool speaks = true;  // this rank, of those that do the same

  EvaluateOptions() { ranks.data_parallel = true; }
};

void describe(OptionTable& t, EvaluateOptions& o) {
  t.section("task");
  t.add("task", o.task,
        "Task. PERPLEXITY: of a text, JSON lines or a corpus. WIKITEXT103: perplexity per word, "
        "detokenized. LAMBADA: accuracy of last-word prediction. LOGITS: write logits to a file. "
        "ICT-ZEROSHOT-NQ, RETRIEVER-EVAL: top-k accuracy of a retriever.",
        {{"PERPLEXITY", Task::perplexity},
         {"WIKITEXT103", Task::wikitext},
         {"LAMBADA", Task::lambada},
         {"LOGITS", Task::logits},
         {"ICT-ZEROSHOT-NQ", Task::retriever},
         {"RETRIEVER-EVAL", Task::retriever}})
      .required();
  t.add("valid-data", o.valid_data,
        "File to evaluate on; for PERPLEXITY also the prefix of a .bin/.idx corpus.");
  t.add("json-key", o.perplexity.json_key, "PERPLEXITY: JSON key of the text.").alias("json-keys");
  t.add("seq-length", o.perplexity.seq_length, "Context length in tokens; 0: the model's maximum.",
        at_least(0));
  t.add("micro-batch-size", o.perplexity.micro_batch_size, "Sequences per forward pass.",
        between(1, 1 << 20))
      .alias("batch-size");
  t.add("overlapping-eval", o.perplexity.overlapping_eval,
        "Sliding windows: distance between windows in tokens; each window after the first scores "
        "this many. none: 32 for WIKITEXT103, no overlap for PERPLEXITY.",
        at_least(1));
  t.add("allow-tokenizer-mismatch", o.perplexity.allow_tokenizer_mismatch,
        "Accept a corpus whose note names another tokenizer than the model's.");
  t.add(
      "prepend-eod", o.perplexity.prepend_eod,
      "PERPLEXITY: prepend the end-of-document token to each document, to score its first token.");
  t.add("append-eod", o.perplexity.append_eod,
        "PERPLEXITY of texts: append the end-of-document token to each text, and score it.");
  t.add("strict-lambada", o.strict_lambada,
        "LAMBADA: predict the whole last word, not only its last token.");
  t.add("ids", o.ids,
        "LOGITS: file of token ids: .npy, JSON (an array, or arrays), or plain numbers, one "
        "sequence per line.");
  t.add("decoder-ids", o.decoder_ids,
        "LOGITS of an encoder-decoder model (T5): decoder input, from the start token on, in the "
        "forms of --ids. The encoder reads --ids.");
  t.add("output", o.output, "LOGITS: output file, .npy in float32.");
  t.section("run");
  t.add("json", o.json, "Print one JSON object instead of text.");
  t.add("log-interval", o.log_interval, "Micro-batches between progress lines; 0: none.",
        at_least(0));
  describe(t, o.retriever);
}

std::vector<std::string> contradictions(const OptionTable&, const EvaluateOptions& o) {
  std::vector<std::string> found;
  const auto require = [&](bool good, const char* problem) {
    if (!good) {
      found.emplace_back(problem);
    }
  };
  if (o.task == Task::retriever) {
    found = problems(o.retriever);
    require(o.ranks.tensor == 1,
            "a retriever cannot be divided: leave out "
            "--tensor-model-parallel-size");
    return found;
  }
  if (o.task == Task::logits) {
    require(!o.ids.empty() && !o.output.empty(), "--task LOGITS needs --ids and --output");
    require(o.valid_data.empty(), "--valid-data does not apply to --task LOGITS; give --ids");
  } else {
    require(!o.valid_data.empty(), "--valid-data is missing: the file to evaluate on");
    require(o.ids.empty() && o.decoder_ids.empty() && o.output.empty(),
            "--ids, --decoder-ids and --output are for --task LOGITS");
  }
  require(o.task == Task::perplexity || !(o.perplexity.prepend_eod || o.perplexity.append_eod),
          "--prepend-eod and --append-eod are for --task PERPLEXITY");
  require(o.task == Task::lambada || !o.strict_lambada, "--strict-lambada is for --task LAMBADA");
  return found;
}

// The lines of Megatron's tasks.
void print_results(std::ostream& out, const char* task, const std::string& results) {
  const std::string line = fmt::format(" validation results on {} | {}", task, results);
  const std::string rule(line.size() + 1, '-');
  out << rule << '\n' << line << '\n' << rule << '\n';
}

// Calls body(progress) and shows that progress: on a terminal a line that is redrawn and cleared at
// the end, else Megatron's lines.
template <class Body>
auto with_progress(const EvaluateOptions& o, const char* unit, const Body& body) {
  ProgressLine line(unit);
  std::int64_t count = 0;
  return body([&, interval = o.log_interval](std::int64_t done, std::int64_t total) {
    if (!o.speaks) {
      return;
    }
    if (messages_on_terminal()) {
      line.at(done, total);
    } else if (interval > 0 && count++ % interval == 0 && count > 1) {
      Log().info("> working on iteration: ", count - 1);
    }
  });
}

Json run_perplexity(const EvaluateOptions& o, LoadedModel& model, std::ostream& out) {
  const auto result = with_progress(o, "tokens", [&](const auto& progress) {
    return evaluate_perplexity(model, o.perplexity, progress);
  });
  if (!o.json) {
    const std::string words = result.words ? std::to_string(*result.words) : "unknown";
    print_results(out, "PERPLEXITY",
                  fmt::format("nll: {:.6E} | tokens: {} | words: {} | ppl: {:.6E} |", result.nll,
                              result.tokens, words, result.ppl()));
  }
  return {{"nll", result.nll},
          {"tokens", result.tokens},
          {"words", result.words ? Json(*result.words) : Json(nullptr)},
          {"ppl", result.ppl()}};
}

Json run_wikitext(const EvaluateOptions& o, LoadedModel& model, std::ostream& out) {
  const auto result = with_progress(o, "tokens", [&](const auto& progress) {
    return evaluate_wikitext(model, o.perplexity, progress);
  });
  if (!o.json) {
    out << fmt::format(" > number of original tokens: {}, number of detokenized tokens: {}\n",
                       result.original_tokens, result.tokens);
    print_results(
        out, "WIKITEXT103",
        fmt::format("avg loss: {:.4E} | ppl: {:.4E} | adjusted ppl: {:.4E} | token ratio: {} |",
                    result.loss, result.ppl(), result.adjusted_ppl(),
                    python_number(result.token_ratio())));
  }
  return {{"loss", result.loss}, {"ppl", result.ppl()}, {"adjusted_ppl", result.adjusted_ppl()}};
}

Json run_lambada(const EvaluateOptions& o, LoadedModel& model, std::ostream& out) {
  const LambadaOptions lambada{.data = o.valid_data,
                               .strict = o.strict_lambada,
                               .seq_length = o.perplexity.seq_length,
                               .micro_batch_size = o.perplexity.micro_batch_size};
  const auto result = with_progress(o, "passages", [&](const auto& progress) {
    return evaluate_lambada(model, lambada, progress);
  });
  if (result.cut > 0 && o.speaks) {
    Log().warning(result.cut, " of ", result.total,
                  " passages exceed the model's context; their beginnings were cut");
  }
  if (!o.json) {
    print_results(
        out, "LAMBADA",
        fmt::format("number correct: {:.4E} | total examples: {:.4E} | avg accuracy: {:.4E}",
                    static_cast<double>(result.correct), static_cast<double>(result.total),
                    result.accuracy()));
  }
  return {{"correct", result.correct}, {"total", result.total}, {"accuracy", result.accuracy()}};
}

Json run_logits(const EvaluateOptions& o, LoadedModel& model, std::ostream& out) {
  check(model.has_encoder() || o.decoder_ids.empty(), "--decoder-ids: the model of ",
        model.folder().string(), " is a ", model.options().family, ", which has no encoder");
  check(!model.has_encoder() || !o.decoder_ids.empty(), "the model of ", model.folder().string(),
        " is a ", model.options().family,
        ": its encoder reads --ids; give the decoder's input with --decoder-ids");
  const TokenArrays arrays = read_token_arrays(o.ids);
  const TokenArrays decoded =
      o.decoder_ids.empty() ? TokenArrays() : read_token_arrays(o.decoder_ids);
  const auto shape = write_logits(model, arrays, o.perplexity.micro_batch_size, o.output, decoded);
  if (!o.json) {
    out << o.output << ": float32 " << Json(shape).dump() << '\n';
  }
  return {{"output", o.output}, {"shape", shape}};
}

Json run_task(const EvaluateOptions& options, LoadedModel& model, std::ostream& out) {
  if (options.task == Task::retriever) {
    return run_retriever_task(options.retriever, model, options.json, out);
  }
  const Family& family = find_family(model.options().family);
  const bool fits =
      options.task == Task::logits ? family.head != FamilyHead::text_vectors : family.is_decoder();
  check(fits, "the model of ", model.folder().string(), " is a ", model.options().family,
        options.task == Task::logits ? ", which computes text embeddings and no logits"
                                     : "; this task needs a model that generates text. --task "
                                       "LOGITS works for BERT and T5 too");
  switch (options.task) {
    case Task::perplexity:
      return run_perplexity(options, model, out);
    case Task::wikitext:
      return run_wikitext(options, model, out);
    case Task::lambada:
      return run_lambada(options, model, out);
    default:
      return run_logits(options, model, out);
  }
}

constexpr const char* kEvaluateUsage =
    "usage: bloomery evaluate --task TASK --load DIR --valid-data FILE [OPTIONS]\n"
    "       bloomery evaluate --task LOGITS --load DIR --ids FILE [--decoder-ids FILE] "
    "--output FILE.npy\n"
    "       bloomery evaluate --task RETRIEVER-EVAL --load DIR --evidence-data-path FILE.tsv "
    "--embedding-path FILE --qa-data-test FILE\n\n"
    "example:\n  bloomery evaluate --task PERPLEXITY --load run/gpt --valid-data test.txt\n";

int run_evaluate(EvaluateOptions& options, const ModelRanks& ranks, std::ostream& out) {
  options.perplexity.data = options.valid_data;
  return ranks.with_all(options, [&](LoadedModel& model, bool first) {
    if (options.task == Task::retriever && !first) {
      return 0;  // its index is made and searched by one rank
    }
    std::ostringstream null_stream;
    std::ostream& own_out = first ? out : null_stream;
    EvaluateOptions mine = options;
    mine.speaks = first;
    const Json result = run_task(mine, model, own_out);
    if (options.json) {
      own_out << result.dump() << '\n';
    }
    return 0;
  });
}

}  // namespace

int evaluate(const Arguments& arguments, std::ostream& out) {
  return run_model_command(arguments, out, kEvaluateUsage, EvaluateOptions(), run_evaluate);
}

}  // namespace bloomery
