#include "train/run/run_command.h"

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/file.h"
#include "build_config.h"
#include "train/run/run_log.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

void append_line(const std::filesystem::path& path, const std::string& line) {
  std::ofstream file(path, std::ios::app | std::ios::binary);
  if (!(file << line << '\n' << std::flush)) {
    throw std::runtime_error(path.string() + " cannot be written");
  }
}

}  // namespace

void store_command(const std::filesystem::path& folder, const OptionTable& table,
                   const std::vector<std::string>& command, const Log& log) {
  try {
    const std::string options = table.given_json();
    const Json line = {{"time", utc_now()},
                       {"version", build::version},
                       {"folder", std::filesystem::current_path().string()},
                       {"command", command},
                       {"options", Json::parse(options)}};
    append_line(folder / "commands.jsonl",
                line.dump(-1, ' ', false, Json::error_handler_t::replace));
    write_file(folder / "options.json", options);
    write_file(folder / kArgumentsFile, arguments_table(argument_list(table)) + "\n");
  } catch (const std::exception& error) {
    log.warning("the command of this run is not kept: ", error.what());
  }
}

}  // namespace bloomery
