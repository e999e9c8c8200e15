#include "apps/generate/generate.h"

#include <fmt/core.h>

#include <chrono>
#include <optional>

#include "apps/common/model_command.h"
#include "apps/generate/line_editor.h"
#include "apps/generate/output.h"
#include "base/file.h"
#include "base/number_text.h"
#include "base/stop_signals.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

struct Stopped {};  // by a signal, in the middle of a text

std::vector<std::string> read_prompts(const std::string& path) {
  const std::string text = read_file(path);
  std::vector<std::string> prompts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    prompts.push_back(text.substr(at, end - at));
    if (prompts.back().ends_with('\r')) {
      prompts.back().pop_back();
    }
    at = end + 1;
  }
  check(!prompts.empty(), path, " has no prompt: write one per line");
  return prompts;
}

class GenerateRun {
 public:
  // Command and model must outlive the run.
  GenerateRun(const GenerateCommand& command, LoadedModel& model)
      : command_(command),
        model_(model),
        encoder_(model.tokenizer().make_encoder(model.encode_options())),
        generator_(model.model(), model.stream(), model.mesh(), model.tokenizer(),
                   with_ends(command.generate, model)) {}

  // All samples of all prompts. An empty prompt is the token between documents.
  void prompts(const std::vector<std::string>& prompts, std::ostream& out) {
    const std::vector<Request> requests = make_requests(prompts);
    const std::size_t results =
        prompts.size() * static_cast<std::size_t>(command_.samples_per_prompt());
    GenerateOutput output(command_, out, results > 1, model_.has_encoder());
    const auto start = std::chrono::steady_clock::now();
    std::size_t num_tokens = 0;
    const std::size_t step = beams() ? 1 : static_cast<std::size_t>(command_.batch_size);
    for (std::size_t first = 0; first < requests.size() && !StopSignals::came(); first += step) {
      const std::size_t count = std::min(step, requests.size() - first);
      num_tokens += batch(std::span(requests).subspan(first, count), prompts, output);
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    Log().info(fmt::format("{} in {:.2f} s, {:.1f} tokens/s",
                           counted(static_cast<std::int64_t>(num_tokens), "new token"),
                           seconds.count(), static_cast<double>(num_tokens) / seconds.count()));
  }

  // A prompt per line until there are no more or one says "stop".
  void dialogue(const NextLine& next_line, std::ostream& out) {
    GenerateOutput output(command_, out, false, model_.has_encoder());
    std::vector<std::string> prompts;
    while (const std::optional<std::string> line = next_line()) {
      if (*line == "stop") {
        return;
      }
      if (line->empty()) {
        continue;
      }
      const auto number = static_cast<std::int64_t>(prompts.size());
      prompts.push_back(*line);
      try {
        const std::vector<Request> one = {{number, 0, encode(*line, number)}};
        batch(one, prompts, output);
      } catch (const RankFailure&) {  // nobody is left to try again with
        throw;
      } catch (const Error& error) {  // of this prompt; the next may be better
        Log().error(error.what());
      }
    }
  }

 private:
  static GenerateOptions with_ends(GenerateOptions options, LoadedModel& model) {
    options.eos_ids = model.eos_ids();
    options.start = model.start_of_answer();
    if (model.has_separate_documents()) {
      options.unseen = model.end_of_document();
    }
    return options;
  }

  bool beams() const { return command_.generate.num_beams > 1; }

  std::vector<TokenId> encode(const std::string& prompt, std::int64_t number) {
    check(is_utf8(prompt), "prompt ", number, " is not valid UTF-8 from byte ",
          valid_utf8_prefix(prompt), " on");
    std::vector<TokenId> tokens;
    encoder_->encode(prompt, tokens);
    if (tokens.empty()) {
      const auto end = model_.end_of_document();
      check(end.has_value(),
            "the tokenizer has no end-of-document token to start a text from; give a --prompt");
      tokens.push_back(*end);
    }
    const std::int64_t vocabulary = model_.options().vocabulary.size;
    for (const TokenId token : tokens) {
      check(token < vocabulary, "prompt ", number, ": token id ", token,
            " is out of range: the vocabulary has ", vocabulary,
            " tokens; use the model's own tokenizer");
    }
    return tokens;
  }

  // Beam search makes the samples of a prompt together. All prompts are checked before the first is
  // computed.
  std::vector<Request> make_requests(const std::vector<std::string>& prompts) {
    std::vector<Request> requests;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      const std::vector<TokenId> tokens = encode(prompts[i], number);
      generator_.room(static_cast<std::int64_t>(tokens.size()), number);
      for (std::int64_t sample = 0; sample < (beams() ? 1 : command_.samples_per_prompt());
           ++sample) {
        requests.push_back({number, sample, tokens});
      }
    }
    return requests;
  }

  // Returns the number of new tokens. A text that is alone is shown while it grows.
  std::size_t batch(std::span<const Request> requests, const std::vector<std::string>& prompts,
                    GenerateOutput& output) {
    const auto prompt_of = [&](const auto& item) -> const std::string& {
      return prompts[static_cast<std::size_t>(item.prompt)];
    };
    const bool shown = output.shows_text() && requests.size() == 1 && !beams();
    std::vector<Generation> results;
    if (beams()) {
      results = generator_.beams(requests[0], command_.samples_per_prompt());
    } else if (shown) {
      output.begin(prompt_of(requests[0]), requests[0].prompt, requests[0].sample);
      results = generator_.sample(requests, [&](std::size_t, const std::string& text) {
        output.piece(text);
        if (StopSignals::came()) {
          throw Stopped();
        }
      });
    } else {
      results = generator_.sample(requests);
    }
    std::size_t num_tokens = 0;
    for (const Generation& result : results) {
      output.write(prompt_of(result), result, shown);
      num_tokens += result.ids.size();
    }
    output.flush();
    return num_tokens;
  }

  const GenerateCommand& command_;
  LoadedModel& model_;
  std::unique_ptr<Encoder> encoder_;
  Generator generator_;
};

constexpr const char* kGenerateUsage =
    "usage: bloomery generate --load DIR --prompt TEXT [OPTIONS]\n"
    "       bloomery generate --load DIR --prompt-file FILE --json [OPTIONS]\n"
    "       bloomery generate --load DIR --num-samples N [OPTIONS]\n"
    "       bloomery generate --load DIR [OPTIONS]\n\n"
    "example:\n  bloomery generate --load run/gpt --prompt \"Once upon a time\"\n";

int run_generate(GenerateCommand& command, const ModelRanks& ranks, std::ostream& out) {
  command.generate.sampling.seed = static_cast<std::uint64_t>(command.seed);
  const std::vector<std::string> prompts = !command.prompt_file.empty()
                                               ? read_prompts(command.prompt_file)
                                           : command.prompts.empty() ? std::vector<std::string>{""}
                                                                     : command.prompts;
  std::optional<StopSignals> signals;  // in a dialogue Ctrl-C ends the program as usual
  if (!command.interactive()) {
    signals.emplace("stops after the current texts");
  }
  return ranks.with_first(command, [&](LoadedModel& model) {
    GenerateRun run(command, model);
    if (command.interactive()) {
      run.dialogue(typed_lines("Context prompt (stop to exit) >>> "), out);
      return 0;
    }
    try {
      run.prompts(prompts, out);
    } catch (const Stopped&) {
      out << std::endl;
    }
    return StopSignals::came() ? StopSignals::exit_code() : 0;
  });
}

}  // namespace

int generate(const Arguments& arguments, std::ostream& out) {
  return run_model_command(arguments, out, kGenerateUsage, GenerateCommand(), run_generate);
}

}  // namespace bloomery
