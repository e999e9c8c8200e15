#include "apps/report/report.h"

#include <sstream>

#include "apps/bloomery.h"
#include "apps/common/command_line.h"
#include "apps/generate/generate.h"
#include "base/error.h"
#include "checkpoint/folder.h"
#include "config/json_fields.h"
#include "train/report/report_html.h"

namespace bloomery {
namespace {

// The flags of `generate` that mean the device.
Arguments flags_of(const DeviceChoice& choice) {
  DeviceChoice device = choice;
  OptionTable table;
  describe(table, device);
  Arguments flags;
  for (const OptionRow& row : table.rows()) {
    flags.push_back("--" + row.name);
    flags.push_back(row.value_text());
  }
  return flags;
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

void add_samples(const std::string& folder, const SampleChoice& choice,
                 const DeviceChoice& device) {
  const std::vector<CheckpointEntry> checkpoints = list_checkpoints(folder);
  check(!checkpoints.empty(), "no checkpoint in ", folder, ": samples need a saved model");
  const std::string newest = checkpoints.back().folder.string();
  Arguments arguments = {"--load", newest, "--json", "--out-seq-length",
                         std::to_string(choice.tokens)};
  const Arguments flags = flags_of(device);
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  arguments.emplace_back("--prompt");
  arguments.insert(arguments.end(), choice.prompts.begin(), choice.prompts.end());
  std::stringstream texts;
  generate(arguments, texts);

  const RunState state = open_checkpoint(checkpoints.back()).state();
  MetricsFile file(std::filesystem::path(folder) / "metrics.jsonl", std::nullopt);
  for (std::string line; std::getline(texts, line);) {
    const JsonFields fields(line, "generate");
    MetricsRow row{MetricsKind::sample,  state.step, state.consumed_samples, 0,
                   seconds_since_1970(), {}};
    row.texts = {{"prompt", fields.get<std::string>("prompt")},
                 {"text", fields.get<std::string>("text")}};
    file.add(row);
  }
}

int report(const Arguments& arguments, std::ostream& out) {
  std::string folder;
  SampleChoice samples;
  DeviceChoice device;
  OptionTable table;
  table.section("report");
  table.add("folder", folder, "Folder of the run: its --save, otherwise its --tensorboard-dir.")
      .positional()
      .required();
  table.section("samples");
  table.add("samples", samples.prompts,
            "Prompts that the newest checkpoint of the folder continues.");
  table.add("sample-tokens", samples.tokens, "Tokens per sample.", at_least(1));
  describe(table, device);
  if (!read_options(table, arguments, out,
                    "usage: bloomery report FOLDER [OPTIONS]\n\nDraws FOLDER/report.html from "
                    "FOLDER/metrics.jsonl.\n\n"
                    "example:\n  bloomery report run/gpt --samples \"Once upon a time\"\n")) {
    return kFinished;
  }
  if (!samples.prompts.empty()) {
    add_samples(folder, samples, device);
  }
  out << write_report(folder).string() << '\n';
  return kFinished;
}

}  // namespace bloomery
