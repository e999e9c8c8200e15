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
  std::optional<std::int64_t> decoder_start;  // of models with an encoder
  bool operator==(const HfTokenIds&) const = default;
};

// Keys of rotary positions that differ between families.
struct RotaryKeys {
  const char* base = "rope_theta";
  const char* fraction = nullptr;  // none: whole heads turn
  double default_fraction = 1;
};

// What only some forms have.
struct HfExtras {
  bool windows = false;            // by keys that their own function reads
  bool head_norms = false;         // of queries and keys
  bool scaled_embeddings = false;  // by sqrt(hidden size)
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
  // How many classes id2label (or num_labels, in old files) names; 2 where neither is there.
  void labels(std::int64_t& field);
  // A list of numbers from 0; absent: empty.
  void sizes(const char* key, std::vector<std::int64_t>& field);
  void number(const char* key, double& field, double otherwise, double low, double high);
  void number(const char* key, float& field, double otherwise, double low, double high);
  void flag(const char* key, bool& field, bool otherwise);
  // `field` is the opposite of what the key says.
  void opposite(const char* key, bool& field, bool otherwise);
  void activation(const char* key, MlpKind& field, const char* otherwise, bool gated);
  // A key with one of a few words, each of which names an activation.
  struct Word {
    const char* theirs;
    MlpKind ours;
  };
  void activation(const char* key, MlpKind& field, std::initializer_list<Word> words);
  // rope_parameters, rope_scaling, rope_theta: transformers' new and old forms. The old one, which
  // all versions understand, is written.
  void rotary(PositionOptions& positions, const RotaryKeys& keys = {});
  void extras(ModelOptions& options, const HfExtras& extras);
  // sliding_window, of all layers: 4096 where it is absent, none where it is null.
  void window(SelfAttentionOptions& attention);
  // use_sliding_window, sliding_window, max_window_layers, layer_types: some layers have a window.
  void window_by_layer(SelfAttentionOptions& attention, std::int64_t num_layers);
  void tokens(std::int64_t vocabulary, const HfTokenIds& otherwise);
  void decoder_start(std::int64_t vocabulary, std::int64_t otherwise);
  // A key that changes numbers and of which only `value` is computed.
  void only(const char* key, bool value, const char* why);
  // A key whose value, if there is one, must be this word.
  void only_word(const char* key, std::string_view word, const char* why);
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
  // What a writer should be told although the model can be written.
  void note(const std::string& text);

  // One line each.
  const std::vector<std::string>& problems() const;
  const std::vector<std::string>& notes() const;
  void finish() const;       // throws them as one Error
  std::string text() const;  // of a written one

  HfTokenIds token_ids;

  struct Json;  // hf_document.h

 private:
  std::unique_ptr<Json> json_;
};

std::string generation_config(const HfTokenIds& tokens);

}  // namespace bloomery
