#include "comm/tcp/hello.h"

#include <sys/random.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/error.h"

namespace bloomery {

Secret random_secret() {
  Secret secret{};
  check(getrandom(secret.data(), secret.size(), 0) == static_cast<ssize_t>(secret.size()),
        "the system gives no random numbers: ", std::strerror(errno));
  return secret;
}

std::string secret_text(const Secret& secret) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : secret) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Secret secret_from(const std::string& text) {
  Secret secret{};
  bool good = text.size() == 2 * secret.size();
  for (std::size_t i = 0; good && i < secret.size(); ++i) {
    const char* const digits = text.data() + 2 * i;
    const auto [end, problem] = std::from_chars(digits, digits + 2, secret[i], 16);
    good = problem == std::errc() && end == digits + 2;
  }
  check(good,
        "the secret of a start is 32 hexadecimal digits, such as `openssl rand -hex 16` makes");
  return secret;
}

bool same_secret(const Secret& a, const Secret& b) {
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace bloomery
