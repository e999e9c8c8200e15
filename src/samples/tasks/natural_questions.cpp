#include "samples/tasks/natural_questions.h"

#include <array>
#include <istream>
#include <nlohmann/json.hpp>
#include <streambuf>

#include "base/error.h"
#include "base/json_scan.h"
#include "config/json_fields.h"
#include "text/input/byte_source.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

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

std::vector<TitledPassage> passages(const JsonFields& record, const char* key) {
  std::vector<TitledPassage> all;
  for (const JsonFields& each : record.get<std::vector<JsonFields>>(key)) {
    const bool untitled = each.kind("title") == JsonFields::Kind::null;
    all.push_back({untitled ? "" : each.get<std::string>("title"), each.get<std::string>("text")});
  }
  return all;
}

NaturalQuestion question_of(const JsonFields& record) {
  NaturalQuestion result{.question = record.get<std::string>("question")};
  record.require(!result.question.empty(), "the question is empty");
  if (result.question.back() == '?') {
    result.question.pop_back();
  }
  result.positive = passages(record, "positive_ctxs").front();
  result.hard = passages(record, "hard_negative_ctxs");
  result.other = passages(record, "negative_ctxs");
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
    const JsonFields record = JsonFields::of(value, concat(path, ", record ", ++number));
    if (record.get<std::vector<JsonFields>>("positive_ctxs").empty()) {
      ++left_out;
    } else {
      take(question_of(record));
    }
    return false;  // and the record is forgotten
  };
  const Json all = Json::parse(stream, hear, false);
  check(!all.is_discarded(), path, ": is not valid JSON behind record ", number,
        "; is it whole, and UTF-8?");
  check(number > left_out, path, ": there is no question with a passage that answers it");
  return left_out;
}

}  // namespace bloomery
