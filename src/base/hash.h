// XXH3, 64 bits: the hash of blocks of checkpoint files, of manifests and of corpora.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace bloomery {

std::uint64_t xxh3(std::span<const std::byte> bytes);
std::uint64_t xxh3(std::string_view text);

// That of bytes which come piece after piece.
class RunningXxh3 {
 public:
  RunningXxh3();
  ~RunningXxh3();
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hash_text(std::uint64_t hash);  // 16 lower-case hexadecimal digits

}  // namespace bloomery
