#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "apps/bloomery.h"
#include "apps/shims/ds_ssh.h"
#include "apps/shims/shim_file.h"
#include "apps/shims/shims.h"
#include "apps/shims/translate.h"
#include "base/error.h"

namespace bloomery {
namespace {

constexpr int kNoSuchProgram = 127, kCannotRun = 126;  // as a shell tells it

// The program of that name further along PATH, which is no shim; empty: there is none.
std::filesystem::path real_program(const std::string& name, const Variables& variables) {
  const auto path = variables.find("PATH");
  std::istringstream folders(path == variables.end() ? "/usr/local/bin:/bin:/usr/bin"
                                                     : path->second);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto file = std::filesystem::path(folder.empty() ? "." : folder) / name;
    std::error_code failed;
    if (std::filesystem::is_regular_file(file, failed) && access(file.c_str(), X_OK) == 0 &&
        !is_shim_file(file)) {
      return file;
    }
  }
  return {};
}

int become(const std::filesystem::path& program, const Arguments& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) {
    pointers.push_back(const_cast<char*>(word.c_str()));
  }
  pointers.push_back(nullptr);
  execv(program.c_str(), pointers.data());
  std::cerr << "bloomery: cannot start " << program.string() << ": " << std::strerror(errno)
            << '\n';
  return kCannotRun;
}

int become_other(const Arguments& words, const Variables& variables) {
  const std::filesystem::path program = real_program(words[0], variables);
  if (program.empty()) {
    std::cerr << "bloomery: " << words[0]
              << " is not installed, and this call of it starts no script of Megatron-DeepSpeed "
                 "that Bloomery has; `bloomery help compat` lists those\n";
    return kNoSuchProgram;
  }
  return become(program, words);
}

int start(const std::string& name, const Arguments& arguments) {
  const Variables variables = environment_variables();
  if (name == "ds_ssh") {
    return ds_ssh(arguments, variables);
  }
  ShimTarget target = translate(name, arguments, variables);
  for (const std::string& note : target.notes) {
    std::cerr << "bloomery: " << note << '\n';
  }
  for (const auto& [variable, value] : target.variables) {
    setenv(variable.c_str(), value.c_str(), 1);
  }
  switch (target.kind) {
    case ShimTarget::Kind::other:
      return become_other(target.words, variables);
    case ShimTarget::Kind::bloomery:
      target.words.insert(target.words.begin(), "bloomery");
      return become("/proc/self/exe", target.words);
    case ShimTarget::Kind::nothing:
      break;
  }
  return kFinished;
}

}  // namespace

int run_shim(const Arguments& words) noexcept {
  try {
    check(!words.empty(), "`bloomery shim` is for the files that `bloomery shims` writes");
    return start(words[0], {words.begin() + 1, words.end()});
  } catch (const Error& error) {
    std::cerr << "bloomery: " << error.what() << '\n';
    return kBadInput;
  } catch (const std::exception& error) {
    std::cerr << "bloomery: failed: " << error.what() << '\n';
    return kFailed;
  }
}

}  // namespace bloomery
