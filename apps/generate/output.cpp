#include "apps/generate/output.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/error.h"

namespace bloomery {
namespace {

const char* word(Finish finish) {
  switch (finish) {
    case Finish::end:
      return "eod";
    case Finish::stop:
      return "stop";
    case Finish::length:
      return "length";
    case Finish::positions:
      return "positions";
  }
  return "";
}

}  // namespace

std::string generation_json(const std::string& prompt, const Generation& result, bool beam) {
  nlohmann::ordered_json row = {
      {"prompt", prompt},
      {"text", result.text},
      {"ids", result.ids},
      {"logprobs", result.log_probabilities},
      {"length", result.ids.size()},
      {"finished", result.finish == Finish::end || result.finish == Finish::stop},
      {"finish", word(result.finish)},
      {"prompt_number", result.prompt},
      {"sample", result.sample},
  };
  if (beam) {
    row["score"] = result.score;
  }
  return row.dump();
}

GenerateOutput::File::File(const std::string& name) : path(name), stream(name, std::ios::binary) {
  check(stream.is_open(), "cannot write to ", path);
}

void GenerateOutput::File::flush() {
  if (!stream.flush()) {
    throw std::runtime_error("could not write to " + path + ": is the disk full?");
  }
}

GenerateOutput::GenerateOutput(const GenerateCommand& command, std::ostream& out, bool several,
                               bool answers)
    : out_(out),
      json_(command.json),
      several_(several),
      answers_(answers),
      beams_(command.generate.num_beams > 1),
      shows_text_(!command.json &&
                  (command.interactive() ||
                   (command.genfile.empty() && command.sample_output_file.empty()))) {
  if (!command.genfile.empty()) {
    rows_ = std::make_unique<File>(command.genfile);
  }
  if (!command.sample_output_file.empty()) {
    blocks_ = std::make_unique<File>(command.sample_output_file);
  }
}

void GenerateOutput::begin(const std::string& prompt, std::int64_t prompt_number,
                           std::int64_t sample) {
  if (several_) {
    out_ << "--- prompt " << prompt_number << ", sample " << sample << " ---\n";
  }
  out_ << (answers_ ? "" : prompt) << std::flush;
}

void GenerateOutput::piece(const std::string& text) { out_ << text << std::flush; }

void GenerateOutput::write(const std::string& prompt, const Generation& result, bool shown) {
  if (shows_text_) {
    if (!shown) {
      begin(prompt, result.prompt, result.sample);
      piece(result.text);
    }
    out_ << '\n';
  }
  const std::string row = json_ || rows_ ? generation_json(prompt, result, beams_) : "";
  if (json_) {
    out_ << row << '\n';
  }
  if (rows_) {
    rows_->stream << row << '\n';
  }
  if (blocks_) {
    blocks_->stream << "Context: " << prompt << "\n\nMegatron-LM: " << result.text << "\n\n";
  }
}

void GenerateOutput::flush() {
  out_.flush();
  if (rows_) {
    rows_->flush();
  }
  if (blocks_) {
    blocks_->flush();
  }
}

}  // namespace bloomery
