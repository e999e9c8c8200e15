// The files of RACE: a passage in each line, with questions of four choices.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "config/json_fields.h"
#include "samples/tasks/task_text.h"
#include "text/input/byte_source.h"
#include "text/input/python_text.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> text_files(const std::string& folder) {
  check(fs::is_directory(folder), folder,
        fs::exists(folder) ? " is no folder; RACE is read from folders of .txt files"
                           : " does not exist; give a folder of RACE's .txt files");
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") {
      files.push_back(entry.path().string());
    }
  }
  check(!files.empty(), folder,
        ": there is no .txt file in it; RACE's are in folders as train/high and dev/middle");
  std::ranges::sort(files);
  return files;
}

RaceQuestion question_of(const std::string& question, const std::vector<std::string>& options,
                         const std::string& answer, const std::string& place) {
  check(options.size() == TaskKind::kChoices, place, ": a question has ", options.size(),
        " choices in place of ", TaskKind::kChoices);
  RaceQuestion result;
  check(answer.size() == 1 && answer[0] >= 'A' && answer[0] < 'A' + TaskKind::kChoices, place,
        ": the answer '", answer, "' is none of A, B, C and D");
  result.right = answer[0] - 'A';
  for (const std::string& choice : options) {
    const bool has_blank = question.find('_') != question.npos;
    result.choices.push_back(
        clean_text(has_blank ? replace_all(question, "_", choice) : question + " " + choice));
  }
  return result;
}

RacePassage passage_of(std::string_view line, const std::string& place) {
  check(valid_utf8_prefix(line) == line.size(), place, ": is no valid UTF-8");
  const JsonFields record(line, place);
  RacePassage passage{.article = clean_text(record.get<std::string>("article"))};
  using Texts = std::vector<std::string>;
  const auto questions = record.get<Texts>("questions"), answers = record.get<Texts>("answers");
  const auto options = record.get<std::vector<Texts>>("options");
  record.require(questions.size() == answers.size() && questions.size() == options.size(),
                 questions.size(), " questions with ", options.size(), " options and ",
                 answers.size(), " answers");
  for (std::size_t i = 0; i < questions.size(); ++i) {
    passage.questions.push_back(question_of(questions[i], options[i], answers[i], place));
  }
  return passage;
}

}  // namespace

std::vector<RacePassage> read_race(const std::string& folder) {
  std::vector<RacePassage> passages;
  for (const std::string& file : text_files(folder)) {
    const std::string text = read_decompressed(file);
    std::int64_t number = 0;
    for (const std::string_view line : python_lines(text)) {
      ++number;
      if (!strip(line).empty()) {
        passages.push_back(passage_of(line, concat(file, ", line ", number)));
      }
    }
  }
  return passages;
}

}  // namespace bloomery
