#include "base/hash.h"

#include <xxhash.h>

namespace bloomery {

std::uint64_t xxh3(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t xxh3(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

struct RunningXxh3::State {
  State() : xxh3(XXH3_createState()) { XXH3_64bits_reset(xxh3); }
  ~State() { XXH3_freeState(xxh3); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  XXH3_state_t* xxh3;
};

RunningXxh3::RunningXxh3() : state_(std::make_unique<State>()) {}

RunningXxh3::~RunningXxh3() = default;

void RunningXxh3::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_->xxh3, bytes.data(), bytes.size());
}

std::uint64_t RunningXxh3::value() const { return XXH3_64bits_digest(state_->xxh3); }

std::string hash_text(std::uint64_t hash) {
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; hash >>= 4) text[i] = "0123456789abcdef"[hash & 15];
  return text;
}

}  // namespace bloomery
