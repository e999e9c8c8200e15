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
#include "base/file.h"
#include "comm/tcp/hello.h"

namespace bloomery {
namespace {

constexpr std::size_t kMostBytes = 64 << 20;  // more than any system lets a process have

constexpr const char* kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
}

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

Variables parse_environment(const std::string& text, const std::string& place) {
  Variables variables;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line = trimmed(line);
    if (line.empty() || line[0] == '#') {
      continue;
    }
    const std::size_t equals = std::min(line.find('='), line.size());
    const std::string name = trimmed(line.substr(0, equals));
    const bool is_name = name.find_first_not_of(kLetters) == std::string::npos && !name.empty();
    check(is_name && equals < line.size(), place, ":", number, ": '", line, "' is not NAME=VALUE");
    std::string value = trimmed(line.substr(equals + 1));
    if (value.size() > 1 && value.front() == value.back() &&
        (value.front() == '"' || value.front() == '\'')) {
      value = value.substr(1, value.size() - 2);
    }
    variables[name] = value;
  }
  return variables;
}

Variables environment_of_files() {
  const char* const home = std::getenv("HOME");
  const char* const given = std::getenv("DS_ENV_FILE");
  const std::filesystem::path name = given != nullptr && *given != '\0' ? given : ".deepspeed_env";
  std::vector<std::filesystem::path> files = {std::filesystem::path(".") / name};
  if (home != nullptr) {
    files.insert(files.begin(), std::filesystem::path(home) / name);
  }
  Variables all;
  for (const std::filesystem::path& file : files) {
    std::error_code failed;
    if (std::filesystem::is_regular_file(file, failed)) {
      for (const auto& [key, value] : parse_environment(read_file(file), file.string())) {
        all[key] = value;
      }
    }
  }
  return all;
}

std::vector<std::string> carried_names(const Variables& further) {
  constexpr std::array<std::string_view, 13> kPrefixes = {
      "BLOOMERY_", "NCCL_", "CUDA_",  "OMP_", "UCX_", "FI_",           "PYTHON",
      "MLFLOW",    "MV2",   "TORCH_", "KMP_", "MKL_", "MODEL_SIZE_KEY"};
  std::vector<std::string> names;
  for (const auto& [name, value] : environment_variables()) {
    // Every node has devices of its own.
    if (name != "CUDA_VISIBLE_DEVICES" &&
        (further.contains(name) ||
         std::ranges::any_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); }))) {
      names.push_back(name);
    }
  }
  return names;
}

// Their length, and the variables with a zero behind each.
std::string carried_variables(const Variables& further) {
  std::string variables;
  for (const std::string& name : carried_names(further)) {
    variables.append(name).append("=").append(std::getenv(name.c_str())).push_back('\0');
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
