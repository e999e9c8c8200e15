#include "serve/request_fields.h"

#include <nlohmann/json.hpp>

#include "base/json_scan.h"

namespace bloomery {
namespace {

constexpr std::size_t kMostKeys = 512, kMostValues = std::size_t{1} << 17;

[[noreturn]] void refuse(const char* name, const std::string& what) {
  throw ApiError(400, concat(name, " ", what), name);
}

// What a body has, counted before anything is made of it. Numbers do not count, since a prompt may
// have a million token ids; the keys of an object do, since each is looked for among those before.
class RequestBudget final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool key(string_t&) override {
    if (++keys_.back() > kMostKeys) {
      throw ApiError(400, concat("an object of the request has more than ", kMostKeys, " keys"));
    }
    return true;
  }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  // What is no JSON is said by who parses it.
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  bool value() {
    if (++values_ > kMostValues) {
      throw ApiError(400,
                     concat("the request has more than ", kMostValues, " values besides numbers"));
    }
    return true;
  }
  bool open() {
    if (keys_.size() == kMaxJsonTreeDepth) {
      throw ApiError(400,
                     concat("the request is nested more than ", kMaxJsonTreeDepth, " levels deep"));
    }
    keys_.push_back(0);
    return value();
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::size_t> keys_;  // of each list or object that is open
  std::size_t values_ = 0;
};

}  // namespace

Json parse_request(std::string_view body) {
  RequestBudget budget;
  Json::sax_parse(body, &budget);
  Json request;
  try {
    request = Json::parse(body);
  } catch (const nlohmann::json::exception& error) {
    throw ApiError(400, concat("the request is not valid JSON: ", error.what()));
  }
  if (!request.is_object()) {
    throw ApiError(400, "the request is not a JSON object");
  }
  return request;
}

const Json* RequestFields::find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool RequestFields::boolean(const char* name, bool otherwise) const {
  const Json* const value = find(name);
  if (value != nullptr && !value->is_boolean()) {
    refuse(name, "must be true or false");
  }
  return value == nullptr ? otherwise : value->get<bool>();
}

std::optional<std::int64_t> RequestFields::integer(const char* name, std::int64_t least,
                                                   std::int64_t most) const {
  const Json* const value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  // Numbers beyond 63 bits are stored as unsigned ones.
  const bool fits = value->is_number_integer() &&
                    !(value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX);
  if (!fits || value->get<std::int64_t>() < least || value->get<std::int64_t>() > most) {
    refuse(name, concat("must be an integer from ", least, " to ", most));
  }
  return value->get<std::int64_t>();
}

std::optional<double> RequestFields::number(const char* name, double least, double most) const {
  const Json* const value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_number() || !(value->get<double>() >= least && value->get<double>() <= most)) {
    refuse(name, concat("must be a number from ", least, " to ", most));
  }
  return value->get<double>();
}

std::string RequestFields::text(const char* name) const {
  const Json* const value = find(name);
  if (value != nullptr && !value->is_string()) {
    refuse(name, "must be a string");
  }
  return value == nullptr ? "" : value->get<std::string>();
}

std::vector<std::string> RequestFields::texts(const char* name, std::size_t most_texts,
                                              std::size_t most_bytes) const {
  const Json* const value = find(name);
  std::vector<std::string> texts;
  const auto add = [&](const Json& one) {
    if (!one.is_string() || one.get_ref<const std::string&>().empty() ||
        one.get_ref<const std::string&>().size() > most_bytes) {
      refuse(name, concat("must be strings of 1 to ", most_bytes, " bytes"));
    }
    texts.push_back(one.get<std::string>());
  };
  if (value == nullptr) {
    return texts;
  }
  if (!value->is_array()) {
    add(*value);
    return texts;
  }
  if (value->size() > most_texts) {
    refuse(name, concat("may have ", most_texts, " strings at most"));
  }
  for (const Json& one : *value) {
    add(one);
  }
  return texts;
}

std::vector<std::int32_t> RequestFields::tokens(const char* name, std::size_t most) const {
  const Json* const value = find(name);
  std::vector<std::int32_t> tokens;
  if (value == nullptr) {
    return tokens;
  }
  if (!value->is_array() || value->size() > most) {
    refuse(name, concat("must be a list of ", most, " token ids at most"));
  }
  for (const Json& one : *value) {
    if (!one.is_number_integer() || one.get<double>() < 0 || one.get<double>() > INT32_MAX) {
      refuse(name, "must be a list of token ids");
    }
    tokens.push_back(one.get<std::int32_t>());
  }
  return tokens;
}

}  // namespace bloomery
