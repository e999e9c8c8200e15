// A config.json of Hugging Face's transformers, read or written by the same description: a family
// names each key once with the field behind it and the default of transformers. Reading collects
// everything that is wrong or that we do not compute, writing what the form cannot say.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "nn/model_options.h"
#include "tensor/dtype.h"

namespace bloomery {

// Ids that a configuration gives to tokens with a meaning.
struct HfTokenIds {
  std::optional<std::int64_t> bos, eos, pad;
  bool operator==(const HfTokenIds&) const = default;
};

// Keys of rotary positions that differ between families.
struct RotaryKeys {
  const char* base = "rope_theta";
  const char* fraction = nullptr;  // none: whole heads turn
  double default_fraction = 1;
};

class HfConfig {
 public:
  // A config.json to be read. `source` begins every message.
  HfConfig(std::string_view text, std::string source);
  // One to be written, of a model whose weights are stored as `dtype`.
  HfConfig(std::string_view model_type, std::string_view architecture, DType dtype);
  ~HfConfig();
  HfConfig(HfConfig&&) noexcept;
  HfConfig& operator=(HfConfig&&) noexcept;

  bool reading() const;
  std::string model_type() const;    // also by the name of the architecture, in old files
  std::string architecture() const;  // the first one; empty: none

  // The first key is written, any is read; null and absent mean `otherwise`.
  void size(std::initializer_list<const char*> keys, std::int64_t& field, std::int64_t otherwise);
  void number(const char* key, double& field, double otherwise, double low, double high);
  void number(const char* key, float& field, double otherwise, double low, double high);
  void flag(const char* key, bool& field, bool otherwise);
  // `field` is the opposite of what the key says.
  void opposite(const char* key, bool& field, bool otherwise);
  void activation(const char* key, MlpKind& field, const char* otherwise, bool gated);
  // rope_parameters, rope_scaling, rope_theta: transformers' new and old forms. The old one, which
  // all versions understand, is written.
  void rotary(PositionOptions& positions, const RotaryKeys& keys = {});
  void tokens(std::int64_t vocabulary, const HfTokenIds& otherwise);
  // A key that changes numbers and of which only `value` is computed.
  void only(const char* key, bool value, const char* why);
  // A key whose value is a list of words, all of which must be `word`.
  void only_words(const char* key, std::string_view word, const char* why);
  // A key that must be absent, null or empty.
  void none(const char* key, const char* why);
  // What the form has no key for: all its models have this value.
  template <class T>
  void fixed(T& field, const std::type_identity_t<T>& value, const char* why) {
    if (reading()) {
      field = value;
    } else {
      require(field == value, why);
    }
  }
  // What the form has no key for and what changes no result: reading sets it.
  template <class T>
  void absent(T& field, const std::type_identity_t<T>& value) {
    field = reading() ? value : field;
  }
  void require(bool good, const std::string& problem);

  // One line each.
  const std::vector<std::string>& problems() const;
  void finish() const;       // throws them as one Error
  std::string text() const;  // of a written one

  HfTokenIds token_ids;

  struct Json;  // hf_document.h

 private:
  std::unique_ptr<Json> json_;
};

std::string generation_config(const HfTokenIds& tokens);

}  // namespace bloomery
