#include "apps/help/topics.h"

#include <fmt/core.h>

#include "apps/bloomery.h"
#include "apps/commands.h"
#include "base/error.h"
#include "base/wrap.h"
#include "models/family.h"
#include "train/plan/model_sizes.h"

namespace bloomery {
namespace {

// Names of one shape stand in one line.
std::string size_lines(std::size_t columns) {
  struct Shape {
    ModelSize size;
    std::string names;
  };
  std::vector<Shape> shapes;
  for (const ModelSize& size : model_sizes()) {
    if (!shapes.empty() && shapes.back().size.num_layers == size.num_layers &&
        shapes.back().size.hidden_size == size.hidden_size &&
        shapes.back().size.num_attention_heads == size.num_attention_heads) {
      shapes.back().names += ", " + size.name;
    } else {
      shapes.push_back({size, size.name});
    }
  }
  std::string text = fmt::format("{:>8} {:>8} {:>6}  {}\n", "layers", "hidden", "heads", "names");
  for (const auto& [size, names] : shapes) {
    constexpr std::size_t kNames = 26;
    text += wrapped(fmt::format("{:>8} {:>8} {:>6}  ", size.num_layers, size.hidden_size,
                                size.num_attention_heads),
                    names, columns, kNames) +
            "\n";
  }
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> exit_codes() {
  return {
      {std::to_string(kFinished), "Done."},
      {std::to_string(kFailed), "Failed: a machine, a disk or a run that could not go on."},
      {std::to_string(kBadInput), "Bad input. The message says what to do."},
      {std::to_string(kStoppedEarly),
       "Training stopped early with a good checkpoint. Run the same command again to go on."},
      {"128 + N", "Stopped by signal N: 130 by Ctrl-C, 143 by SIGTERM."},
  };
}

std::string program_page(std::size_t columns) {
  std::string text = "usage: bloomery COMMAND [OPTIONS]\n";
  for (const CommandGroup& group : command_groups()) {
    text += concat("\n", group.title, ":\n", command_rows(group.commands, columns));
  }
  text += "\nexit codes:\n" + two_columns(exit_codes(), columns) + "\n";
  return text + wrapped_lines(
                    "`bloomery help COMMAND` describes a command.\n"
                    "`bloomery help compat` lists the scripts of Megatron and DeepSpeed that are "
                    "commands here.\n"
                    "`bloomery help sizes` lists the names for --model-size and --model-family.\n"
                    "Every command takes -q (warnings and errors only) and -v (more detail).\n",
                    columns);
}

std::string compat_page(std::size_t columns) {
  return wrapped_lines(
             "Scripts of Megatron and DeepSpeed, under their own names and with their own flags. "
             "The ending .py and a folder before the name may stay: `bloomery "
             "tools/preprocess_data.py ...`.\n\n",
             columns) +
         command_rows(compatible_commands(), columns);
}

std::string exit_codes_page(std::size_t columns) { return two_columns(exit_codes(), columns); }

std::string sizes_page(std::size_t columns) {
  std::string text =
      wrapped_lines(
          "--model-size NAME sets layers, hidden size and attention heads; flags override it. "
          "Case does not matter.\n\n",
          columns) +
      size_lines(columns) + "\n" +
      wrapped_lines("--model-family NAME sets the defaults of a family:\n\n", columns);
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Family* family : families()) {
    rows.emplace_back(family->name, family->summary);
  }
  return text + two_columns(rows, columns);
}

}  // namespace bloomery
