// The JSON behind an HfConfig, for the files that implement it; it is included after JSON's header.
#pragma once

#include "models/hf_config.h"

namespace bloomery {

using HfDocument = nlohmann::ordered_json;

inline HfDocument or_null(const std::optional<std::int64_t>& id) {
  return id ? HfDocument(*id) : HfDocument(nullptr);
}

struct HfConfig::Json {
  bool reading = true;
  std::string source;
  std::vector<std::string> problems, notes;
  HfDocument document = HfDocument::object();

  // The value of the first of the keys that is there and not null; null otherwise.
  HfDocument find(std::initializer_list<const char*> keys) const {
    for (const char* key : keys) {
      const auto found = document.find(key);
      if (found != document.end() && !found->is_null()) {
        return *found;
      }
    }
    return nullptr;
  }

  void require(bool good, const char* key, const HfDocument& value, const std::string& why) {
    if (!good) {
      std::string text = value.dump(-1, ' ', true, HfDocument::error_handler_t::replace);
      text.resize(std::min<std::size_t>(text.size(), 80));
      problems.push_back(concat(key, " ", text, ": ", why));
    }
  }

  // A number of an object; `otherwise` when it is not there.
  double number(const HfDocument& object, const char* key, double otherwise, double low,
                double high) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) {
      return otherwise;
    }
    const bool good = found->is_number() && *found >= low && *found <= high;
    require(good, key, *found, concat("must be a number from ", low, " to ", high));
    return good ? found->get<double>() : otherwise;
  }

  bool flag(const char* key, bool otherwise) {
    const HfDocument value = find({key});
    require(value.is_null() || value.is_boolean(), key, value, "must be true or false");
    return value.is_boolean() ? value.get<bool>() : otherwise;
  }

  // An id, the first one of a list. None is outside of the vocabulary.
  std::optional<std::int64_t> token(const char* key, std::int64_t vocabulary,
                                    const std::optional<std::int64_t>& otherwise) const {
    HfDocument value = document.contains(key) ? find({key}) : or_null(otherwise);
    if (value.is_array() && !value.empty()) {
      value = HfDocument(value[0]);
    }
    const bool good = value.is_number_integer() && value >= 0 && value < vocabulary;
    return good ? std::optional(value.get<std::int64_t>()) : std::nullopt;
  }
};

}  // namespace bloomery
