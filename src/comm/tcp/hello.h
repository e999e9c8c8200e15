// What a process says first on a connection between ranks, so that strangers, other starts and
// other builds are told apart before anything of theirs is kept.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace bloomery {

// Known to the ranks of one start alone. All zero: nobody gave one, and it protects nothing.
using Secret = std::array<unsigned char, 16>;

Secret random_secret();
std::string secret_text(const Secret& secret);       // 32 hexadecimal digits
Secret secret_from(const std::string& text);         // an Error for anything else
bool same_secret(const Secret& a, const Secret& b);  // takes as long for any two

struct Hello {
  static constexpr std::uint32_t kProtocol = 0xB1000003;

  std::uint32_t protocol = kProtocol;
  std::int32_t rank = 0, size = 1;
  std::uint32_t unused = 0;
  std::uint64_t build = 0;  // of the program: build_number()
  std::uint64_t job = 0;    // of the launcher's name for the start; 0: it has none
  Secret secret{};
};
static_assert(sizeof(Hello) == 48);  // without gaps; a stranger may send no more

}  // namespace bloomery
