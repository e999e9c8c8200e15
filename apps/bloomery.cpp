#include "apps/bloomery.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>

#include "apps/bench/bench.h"
#include "apps/chat/chat.h"
#include "apps/checkpoint/checkpoint.h"
#include "apps/convert/aliases.h"
#include "apps/convert/convert.h"
#include "apps/data/data.h"
#include "apps/doctor/doctor.h"
#include "apps/evaluate/evaluate.h"
#include "apps/generate/generate.h"
#include "apps/help/help.h"
#include "apps/launch/launch.h"
#include "apps/openwebtext/openwebtext.h"
#include "apps/parity/parity.h"
#include "apps/pipeline/pipeline.h"
#include "apps/preprocess/preprocess.h"
#include "apps/pretrain/pretrain.h"
#include "apps/report/report.h"
#include "apps/retrieve/retrieve.h"
#include "apps/serve/serve.h"
#include "apps/tokenizer/tokenizer.h"
#include "base/build_number.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/terminal.h"
#include "build_config.h"
#include "comm/host_group.h"
#include "config/nearest.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// Tools of Megatron and DeepSpeed under their names.
std::vector<Command> tools_of_others() {
  return {
      {"merge_mp_partitions", "ranks of a Megatron checkpoint joined, as its tool",
       merge_mp_partitions},
      {"checkpoint_util", "a Megatron checkpoint for other ranks, as its tool", checkpoint_util},
      {"deepspeed_to_megatron", "a checkpoint as Megatron's, as its tool", deepspeed_to_megatron},
      {"deepspeed_to_transformers", "a checkpoint as a Hugging Face model, as its tool",
       deepspeed_to_transformers},
      {"zero_to_fp32", "exact weights of a checkpoint in one file, as DeepSpeed's tool",
       zero_to_fp32},
      {"ds_to_universal", "a checkpoint as DeepSpeed's universal one, as its tool",
       ds_to_universal},
      {"hf2megads_weight_converter", "Hugging Face to DeepSpeed and back, as its tool",
       hf2megads_weight_converter},
      {"merge_datasets", "the same as `data merge`, under Megatron's name", data_merge},
      {"analyze_data", "the same as `data analyze`, under Megatron-DeepSpeed's name", data_analyze},
      {"blacklist_urls", "URLs without those of no use, as Megatron's tool", blacklist_urls},
      {"cleanup_dataset", "repaired English documents, as Megatron's tool", cleanup_dataset},
      {"cleanup_fix_dataset", "documents cleaned and filtered, as Megatron's tool",
       cleanup_fix_dataset},
      {"find_duplicates", "pairs of similar documents, as Megatron's tool", find_duplicates},
      {"group_duplicate_url", "groups of such pairs, as Megatron's tool", group_duplicate_url},
      {"remove_group_duplicates", "documents without all but one of a group, as Megatron's tool",
       remove_group_duplicates},
      {"filter_ngrams", "documents without texts of test sets, as Megatron's tool", filter_ngrams},
      {"add_id", "documents with an id, as Megatron's tool", add_id},
      {"merge_jsons", "files of a folder joined, as Megatron's tool", merge_jsons},
  };
}

std::vector<Command> commands() {
  std::vector<Command> all = {
      {"doctor", "what this machine has, what it lacks, and how to install it", doctor},
      {"bench", "measure this machine and the kernels on it", bench},
      {"preprocess", "turn text into tokenised corpora", preprocess_command},
      {"preprocess_data", "the same, under Megatron's name", preprocess_command},
      {"pretrain", "train a model", pretrain_command},
      {"pretrain_gpt", "the same, under Megatron's name", pretrain_command},
      {"pretrain_bert", "train BERT, under Megatron's name", pretrain_bert_command},
      {"pretrain_t5", "train T5, under Megatron's name", pretrain_t5_command},
      {"finetune", "tune a model on instructions and conversations, or a BERT for a task",
       finetune_command},
      {"tasks_main", "the same for a task, or evaluate, under Megatron's name", tasks_main_command},
      {"finetune_llama", "the same on Alpaca's records, under Megatron-DeepSpeed's name",
       finetune_llama_command},
      {"pretrain_ict", "train a retriever, under Megatron's name", pretrain_ict_command},
      {"launch", "start a command as several ranks, here and on other machines", launch_command},
      {"generate", "text from a model", generate},
      {"generate_samples_gpt", "the same, under Megatron's name", generate},
      {"chat", "a conversation with a model in the terminal", chat},
      {"serve", "a model behind HTTP: OpenAI's and Megatron's APIs, a page to talk to it", serve},
      {"run_text_generation_server", "the same, under Megatron's name", serve},
      {"report", "the curves of a run as a page for browsers", report},
      {"parity", "whether layouts of ranks train like one rank", parity},
      {"pipeline", "what a schedule of pipeline stages costs, with a picture", pipeline},
      {"tokenizer", "text to token ids and back", tokenizer},
      {"checkpoint", "list, check, compare and remove checkpoints", checkpoint},
      {"evaluate", "perplexity, WikiText, LAMBADA, raw logits of a model, answers found", evaluate},
      {"retrieve", "index texts by a retriever's vectors, and search them", retrieve},
      {"convert", "models between checkpoints, ours and others', and Hugging Face folders",
       convert},
      {"data",
       "clean, filter and deduplicate text; look at, check, join and split tokenised corpora",
       data},
      {"help", "what a command does, and its options", help_command},
      {"completion", "a script that completes words in bash, zsh or fish", completion},
      {"man", "the manual page", man},
  };
  const std::vector<Command> tools = tools_of_others();
  const auto words = std::ranges::find(all, "help", &Command::name);
  all.insert(words, tools.begin(), tools.end());
  return all;
}

// Scripts of Megatron's tools keep working: tools/preprocess_data.py is preprocess_data.
Arguments without_script_spelling(Arguments arguments) {
  constexpr std::string_view kEnding = ".py";
  for (const char* script : {"tasks/main.py", "tasks/main"}) {  // whose own name says nothing
    if (!arguments.empty() && arguments[0].ends_with(script)) {
      arguments[0] = "tasks_main";
    }
  }
  if (!arguments.empty() && arguments[0].ends_with(kEnding)) {
    std::string& name = arguments[0];
    name.erase(name.size() - kEnding.size());
    name.erase(0, name.rfind('/') + 1);  // npos + 1 is 0
  }
  return arguments;
}

// Messages may quote damaged files: bytes that are no text, or that a terminal would obey, are
// shown by their numbers.
std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    for (const char c : text.substr(0, valid)) {
      const auto byte = static_cast<unsigned char>(c);
      const bool control = (byte < ' ' && c != '\n' && c != '\t') || byte == 0x7F;
      shown += control ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
    }
    text.remove_prefix(valid);
    if (!text.empty()) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
    }
  }
  return shown;
}

// Takes -q and -v out of the arguments: they belong to the program, wherever they stand.
LogLevel take_verbosity(Arguments& arguments) {
  LogLevel level = LogLevel::info;
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  const auto kept = std::remove_if(arguments.begin(), end, [&](const std::string& argument) {
    const bool quiet = argument == "-q" || argument == "--quiet";
    const bool verbose = argument == "-v" || argument == "--verbose";
    level = quiet ? LogLevel::warning : verbose ? LogLevel::debug : level;
    return quiet || verbose;
  });
  arguments.erase(kept, end);
  return level;
}

}  // namespace

bool is_bloomery_command(const Arguments& arguments) {
  const Arguments plain = without_script_spelling(arguments);
  return !plain.empty() && std::ranges::any_of(commands(), [&](const Command& command) {
    return command.name == plain[0];
  });
}

std::string suggested_command(const std::string& word) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    names.push_back(command.name);
  }
  return suggestion(word, names);
}

int dispatch_bloomery(const Arguments& arguments, std::ostream& out) {
  return dispatch("bloomery", commands(), without_script_spelling(arguments), out);
}

int run_bloomery(const Arguments& given, std::ostream& out, std::ostream& errors) noexcept {
  try {
    Arguments arguments = given;
    const LogThreshold threshold(take_verbosity(arguments));
    if (!arguments.empty() && arguments[0] == "--version") {
      out << "bloomery " << build::version << (build::cuda ? " (CUDA and CPU)" : " (CPU)")
          << ", build " << hash_text(build_number()) << '\n';
      return kFinished;
    }
    const int code = dispatch_bloomery(arguments, out);
    if (!out.flush()) {
      throw std::runtime_error("the output could not be written: the disk or the reader is gone");
    }
    return code;
  } catch (const RankFailure& failure) {
    errors << "bloomery: " << printable(failure.what()) << '\n';
    return failure.mistake ? kBadInput : kFailed;
  } catch (const Error& error) {
    errors << "bloomery: " << printable(error.what()) << '\n';
    return kBadInput;
  } catch (const std::bad_alloc&) {
    errors << "bloomery: failed: not enough memory for what was asked\n";
    return kFailed;
  } catch (const std::exception& error) {
    errors << "bloomery: failed: " << printable(error.what()) << '\n';
    return kFailed;
  }
}

}  // namespace bloomery
