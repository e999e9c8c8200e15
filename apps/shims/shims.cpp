#include "apps/shims/shims.h"

#include <filesystem>
#include <fstream>

#include "apps/bloomery.h"
#include "apps/common/command_line.h"
#include "apps/launch/hosts.h"
#include "apps/shims/shim_file.h"
#include "apps/shims/translate.h"
#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/user_cache.h"

namespace bloomery {
namespace {

constexpr const char* kMark = "# written by bloomery shims";

constexpr const char* kUsage =
    "usage: eval \"$(bloomery shims [--dir FOLDER])\"\n\nMakes scripts of Megatron-DeepSpeed run "
    "unchanged. Writes small files named deepspeed, torchrun, python, python3, ds_report and "
    "ds_ssh, and prints the line that puts their folder in front of PATH. They start Bloomery for "
    "the scripts that it has (`bloomery help compat`), and the program of their name for "
    "everything "
    "else. With BLOOMERY_DRY_RUN=1 nothing trains and nothing is written: plans are "
    "printed.\n\nexample:\n  eval \"$(bloomery shims --dir shims)\"\n  bash "
    "examples_deepspeed/rebase/ds_pretrain_gpt_125M.sh\n";

struct ShimOptions {
  std::string folder;
};

void describe(OptionTable& t, ShimOptions& o) {
  t.section("shims");
  t.add("dir", o.folder, "Folder of the files; none: one of this user's own.");
}

std::filesystem::path own_folder() {
  const std::filesystem::path cache = user_cache();
  check(!cache.empty(), "HOME is not set: give --dir FOLDER");
  return cache / "shims";
}

void write_shim(const std::filesystem::path& file, const std::string& text) {
  namespace fs = std::filesystem;
  const auto permissions = fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                           fs::perms::others_read | fs::perms::others_exec;
  // Many ranks may do this at once, so what is right already stays.
  if (!fs::exists(file) || read_file(file) != text) {
    write_file(file, text);
  }
  if ((fs::status(file).permissions() & permissions) != permissions) {
    fs::permissions(file, permissions, fs::perm_options::add);
  }
}

}  // namespace

std::string shim_file(const std::filesystem::path& program, const std::string& name) {
  return concat("#!/bin/sh\n", kMark, "\nexec ", quoted(program.string()), " shim ", name,
                " \"$@\"\n");
}

bool is_shim_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string first, second;
  char start[3] = "";
  if (!file.read(start, 2) || std::string(start) != "#!") {
    return false;
  }
  return std::getline(file, first) && std::getline(file, second) && second == kMark;
}

int shims_command(const Arguments& arguments, std::ostream& out) {
  ShimOptions options;
  OptionTable table;
  describe(table, options);
  if (!read_options(table, arguments, out, kUsage)) {
    return kFinished;
  }
  const auto folder = std::filesystem::absolute(
      options.folder.empty() ? own_folder() : std::filesystem::path(options.folder));
  check(folder.string().find(':') == std::string::npos, "--dir ", folder.string(),
        " has a colon, which PATH cannot hold: choose another folder");
  for (const std::string& name : shim_names()) {
    check(!std::filesystem::exists(folder / name) || is_shim_file(folder / name),
          (folder / name).string(),
          " is there already and is no shim: give --dir a folder of its own");
  }
  try {
    create_folders(folder);
  } catch (const std::filesystem::filesystem_error& failure) {
    throw Error(concat("--dir ", folder.string(), " cannot be made (", failure.code().message(),
                       "): choose a folder that you may write"));
  }
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  for (const std::string& name : shim_names()) {
    write_shim(folder / name, shim_file(program, name));
  }
  out << "export PATH=" << quoted(folder.string()) << ":\"$PATH\"\n";
  return kFinished;
}

}  // namespace bloomery
