#include "apps/launch/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "comm/tcp/hello.h"

namespace bloomery {
namespace {

constexpr std::size_t kMostBytes = 64 << 20;  // more than any system lets a process have

std::string read_exactly(int descriptor, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t count = read(descriptor, text.data() + done, bytes - done);
    check(count > 0 || (count < 0 && errno == EINTR),
          "--orders is for launches that another launch started");
    done += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  return text;
}

bool is_executable_file(const std::filesystem::path& path) {
  std::error_code failed;
  return std::filesystem::is_regular_file(path, failed) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

// Their length, and the variables with a zero behind each.
std::string carried_variables() {
  constexpr std::array<std::string_view, 6> kPrefixes = {"BLOOMERY_", "NCCL_", "CUDA_",
                                                         "OMP_",      "UCX_",  "MODEL_SIZE_KEY="};
  std::string variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (std::ranges::any_of(kPrefixes, [&](auto prefix) { return variable.starts_with(prefix); })) {
      variables.append(variable).push_back('\0');
    }
  }
  return concat(variables.size(), "\n", variables);
}

void take_variables(int descriptor) {
  std::string length;
  for (std::string next; (next = read_exactly(descriptor, 1)) != "\n";) {
    length += next;
  }
  std::size_t bytes = 0;
  const auto [end, problem] = std::from_chars(length.data(), length.data() + length.size(), bytes);
  check(problem == std::errc() && end == length.data() + length.size() && bytes <= kMostBytes, "'",
        length, "' is no length of variables: launches of two versions, or --orders by hand");
  std::istringstream variables(read_exactly(descriptor, bytes));
  for (std::string variable; std::getline(variables, variable, '\0');) {
    const std::size_t equals = variable.find('=');
    if (equals != std::string::npos) {
      setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
    }
  }
}

void give_secret() {
  const char* const given = std::getenv("BLOOMERY_SECRET");
  if (given == nullptr || *given == '\0') {
    setenv("BLOOMERY_SECRET", secret_text(random_secret()).c_str(), 1);
  } else {
    secret_from(given);
  }
}

bool is_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return is_executable_file(name);
  }
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/local/bin:/bin:/usr/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (is_executable_file(std::filesystem::path(folder.empty() ? "." : folder) / name)) {
      return true;
    }
  }
  return false;
}

}  // namespace bloomery
