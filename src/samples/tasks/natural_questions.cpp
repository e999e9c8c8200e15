#include "samples/tasks/natural_questions.h"

#include <array>
#include <istream>
#include <nlohmann/json.hpp>
#include <streambuf>

#include "base/error.h"
#include "base/json_scan.h"
#include "text/input/byte_source.h"

namespace bloomery {
namespace {

using Json = nlohmann::json;

// Such files are larger than what is kept of them: they are never whole in memory.
class SourceBuffer : public std::streambuf {
 public:
  explicit SourceBuffer(const std::string& path)
      : source_(decompressed(std::make_unique<FileSource>(path))) {}

 protected:
  int_type underflow() override {
    const std::size_t count = source_->read(bytes_);
    setg(bytes_.data(), bytes_.data(), bytes_.data() + count);
    return count == 0 ? traits_type::eof() : traits_type::to_int_type(bytes_[0]);
  }

 private:
  std::unique_ptr<ByteSource> source_;
  std::array<char, 1 << 16> bytes_;
};

const Json& field(const Json& record, const char* key, bool (Json::*is_kind)() const,
                  const char* kind, const std::string& place) {
  const auto found = record.find(key);
  check(found != record.end() && ((*found).*is_kind)(), place, ": there is no ", kind, " '", key,
        "'");
  return *found;
}

std::string text_field(const Json& record, const char* key, const std::string& place) {
  return field(record, key, &Json::is_string, "text", place).get<std::string>();
}

TitledPassage passage_of(const Json& passage, const std::string& place) {
  check(passage.is_object(), place, ": a passage is no JSON object");
  const auto title = passage.find("title");
  const bool untitled = title != passage.end() && title->is_null();
  return {untitled ? "" : text_field(passage, "title", place), text_field(passage, "text", place)};
}

std::vector<TitledPassage> passages(const Json& record, const char* key, const std::string& place) {
  std::vector<TitledPassage> all;
  for (const Json& each : field(record, key, &Json::is_array, "list", place)) {
    all.push_back(passage_of(each, concat(place, ", ", key)));
  }
  return all;
}

NaturalQuestion question_of(const Json& record, const std::string& place) {
  NaturalQuestion result{.question = text_field(record, "question", place)};
  check(!result.question.empty(), place, ": the question is empty");
  if (result.question.back() == '?') {
    result.question.pop_back();
  }
  result.positive = passages(record, "positive_ctxs", place).front();
  result.hard = passages(record, "hard_negative_ctxs", place);
  result.other = passages(record, "negative_ctxs", place);
  return result;
}

}  // namespace

std::int64_t read_natural_questions(const std::string& path,
                                    const std::function<void(NaturalQuestion)>& take) {
  using Event = Json::parse_event_t;
  SourceBuffer buffer(path);
  std::istream stream(&buffer);
  stream.exceptions(std::ios::badbit);  // what the source throws is not swallowed
  std::int64_t number = 0, left_out = 0;
  const auto hear = [&](int depth, Event event, Json& value) {
    check(depth <= kMaxJsonTreeDepth, path, ": nested more than ", kMaxJsonTreeDepth,
          " levels deep");
    check(depth > 0 || event == Event::array_start || event == Event::array_end, path,
          ": is no JSON list of records with 'question' and 'positive_ctxs', as DPR's are");
    const bool ends =
        event == Event::object_end || event == Event::array_end || event == Event::value;
    if (depth != 1 || !ends) {
      return true;
    }
    const std::string place = concat(path, ", record ", ++number);
    check(value.is_object(), place, ": is no JSON object");
    if (field(value, "positive_ctxs", &Json::is_array, "list", place).empty()) {
      ++left_out;
    } else {
      take(question_of(value, place));
    }
    return false;  // and the record is forgotten
  };
  const Json all = Json::parse(stream, hear, false);
  check(!all.is_discarded(), path, ": is no valid JSON behind record ", number,
        "; is it whole, and UTF-8?");
  check(number > left_out, path, ": there is no question with a passage that answers it");
  return left_out;
}

}  // namespace bloomery
