// `bloomery checkpoint diff`: what two checkpoints do not have in common.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint.h"
#include "checkpoint/compare.h"
#include "checkpoint_common.h"
#include "config/option_table.h"

namespace bloomery {
namespace {

CheckpointReader open_newest(const std::string& path) {
  return open_checkpoint(require_checkpoints(path).back());
}

void print_options(const RunState& a, const RunState& b, std::ostream& out) {
  const auto left = nlohmann::json::parse(a.options).flatten();
  const auto right = nlohmann::json::parse(b.options).flatten();
  const auto value_of = [](const nlohmann::json& all, const std::string& key) {
    return all.contains(key) ? all[key].dump() : "(absent)";
  };
  nlohmann::json keys = left;
  keys.update(right);
  for (const auto& [key, unused] : keys.items()) {
    const std::string before = value_of(left, key), after = value_of(right, key);
    if (before != after) {
      out << fmt::format("option {}: {} | {}\n", key.substr(std::min<std::size_t>(1, key.size())),
                         before, after);
    }
  }
}

// How many lines were printed.
int print_state(const RunState& a, const RunState& b, std::ostream& out) {
  int different = 0;
  const auto line = [&](const char* what, const auto& left, const auto& right) {
    if (left != right) {
      out << what << ": " << left << " | " << right << '\n';
      ++different;
    }
  };
  const auto map_text = [](const auto& map) { return nlohmann::json(map).dump(); };
  line("step", a.step, b.step);
  line("consumed samples", a.consumed_samples, b.consumed_samples);
  line("loss scale", a.loss_scale.scale, b.loss_scale.scale);
  line("loss scale, clean steps", a.loss_scale.clean_steps, b.loss_scale.clean_steps);
  line("loss scale, tolerance left", a.loss_scale.tolerance_left, b.loss_scale.tolerance_left);
  line("data indices", map_text(a.data_indices), map_text(b.data_indices));
  line("choices", a.choices, b.choices);
  line("further state", map_text(a.extra), map_text(b.extra));
  return different;
}

struct TensorCounts {
  int same = 0, different = 0;
};

void compare_one(const CheckpointReader& a, const CheckpointReader& b, const std::string& name,
                 TensorCounts& counts, std::ostream& out) {
  if (!a.contains(name) || !b.contains(name)) {
    ++counts.different;
    out << fmt::format("tensor {}: only in the {}\n", name, a.contains(name) ? "first" : "second");
    return;
  }
  const ManifestTensor &left = a.tensor(name), &right = b.tensor(name);
  if (left.dtype != right.dtype || !(left.shape == right.shape)) {
    ++counts.different;
    out << "tensor " << name << ": " << left.dtype << " " << left.shape << " | " << right.dtype
        << " " << right.shape << '\n';
    return;
  }
  const TensorDifference difference = compare_tensor(a, b, name);
  if (difference.count == 0) {
    ++counts.same;
    return;
  }
  ++counts.different;
  out << fmt::format("tensor {}: {} of {} elements differ, by at most {:g}, first at element {}\n",
                     name, difference.count, left.shape.numel(), difference.largest,
                     difference.first);
}

}  // namespace

int checkpoint_diff(const Arguments& arguments, std::ostream& out) {
  std::vector<std::string> paths;
  OptionTable table;
  table.section("what to compare");
  table.add("path", paths, "Two checkpoints, or folders of which the newest is taken.")
      .positional()
      .required();
  if (wants_help(arguments)) {
    out << "usage: bloomery checkpoint diff FIRST SECOND\n\nExit code 0 when state and tensors are "
           "equal to the bit, 1 when they differ; options are\nshown and do not count.\n\n"
        << table.help();
    return 0;
  }
  table.read_flags(arguments);
  table.finish();
  check(paths.size() == 2, "two checkpoints are compared, ", paths.size(), " were given");
  const CheckpointReader a = open_newest(paths[0]), b = open_newest(paths[1]);
  out << "comparing " << a.folder().string() << " | " << b.folder().string() << '\n';
  print_options(a.state(), b.state(), out);
  const int states = print_state(a.state(), b.state(), out);
  std::vector<std::string> names = a.names();
  for (const std::string& name : b.names()) {
    if (!a.contains(name)) {
      names.push_back(name);
    }
  }
  TensorCounts counts;
  for (const std::string& name : names) {
    compare_one(a, b, name, counts, out);
  }
  out << fmt::format("{} tensors are equal, {} differ\n", counts.same, counts.different);
  return states == 0 && counts.different == 0 ? 0 : 1;
}

}  // namespace bloomery
