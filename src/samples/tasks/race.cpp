// The files of RACE: a passage in each line, with questions of four choices.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_scan.h"
#include "samples/tasks/task_text.h"
#include "text/input/byte_source.h"
#include "text/input/python_text.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

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

const Json& list_of(const Json& record, const char* key, const std::string& place) {
  const auto found = record.find(key);
  check(found != record.end() && found->is_array(), place, ": there is no list '", key, "'");
  return *found;
}

std::string text_of(const Json& value, const char* what, const std::string& place) {
  check(value.is_string(), place, ": ", what, " is no text");
  return value.get<std::string>();
}

RaceQuestion question_of(const std::string& question, const Json& options,
                         const std::string& answer, const std::string& place) {
  check(options.is_array() && options.size() == TaskKind::kChoices, place, ": a question has ",
        options.is_array() ? options.size() : 0, " choices in place of ", TaskKind::kChoices);
  RaceQuestion result;
  check(answer.size() == 1 && answer[0] >= 'A' && answer[0] < 'A' + TaskKind::kChoices, place,
        ": the answer '", answer, "' is none of A, B, C and D");
  result.right = answer[0] - 'A';
  for (const Json& option : options) {
    const std::string choice = text_of(option, "a choice", place);
    const bool has_blank = question.find('_') != question.npos;
    result.choices.push_back(
        clean_text(has_blank ? replace_all(question, "_", choice) : question + " " + choice));
  }
  return result;
}

RacePassage passage_of(std::string_view line, const std::string& place) {
  check(valid_utf8_prefix(line) == line.size(), place, ": is no valid UTF-8");
  check_json_depth(line);
  const Json record = Json::parse(line, nullptr, false);
  check(record.is_object(), place, ": is no JSON object");
  check(record.contains("article"), place, ": there is no 'article'");
  const Json &questions = list_of(record, "questions", place),
             &options = list_of(record, "options", place),
             &answers = list_of(record, "answers", place);
  check(questions.size() == answers.size() && questions.size() == options.size(), place, ": ",
        questions.size(), " questions with ", options.size(), " options and ", answers.size(),
        " answers");
  RacePassage passage{.article = clean_text(text_of(record["article"], "the article", place))};
  for (std::size_t i = 0; i < questions.size(); ++i) {
    passage.questions.push_back(question_of(text_of(questions[i], "a question", place), options[i],
                                            text_of(answers[i], "an answer", place), place));
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
