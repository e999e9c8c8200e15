// `bloomery checkpoint diff`: what two checkpoints do not have in common.
#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>

#include "apps/checkpoint/checkpoint.h"
#include "apps/checkpoint/common.h"
#include "apps/common/command_line.h"
#include "base/error.h"
#include "checkpoint/compare.h"

namespace bloomery {
namespace {

CheckpointReader open_newest(const std::string& path) {
  return open_checkpoint(require_checkpoints(path).back());
}

using Json = nlohmann::json;

// One line for each member, however deep, whose values differ: how many there are.
int print_members(const char* what, const Json& first, const Json& second, std::ostream& out) {
  const Json left = first.flatten(), right = second.flatten();
  const auto value_of = [](const Json& all, const std::string& key) {
    return all.contains(key) ? all[key].dump() : "(absent)";
  };
  Json keys = left;
  keys.update(right);
  int different = 0;
  for (const auto& [key, unused] : keys.items()) {
    const std::string before = value_of(left, key), after = value_of(right, key);
    if (before != after) {
      out << fmt::format("{} {}: {} | {}\n", what, key.substr(std::min<std::size_t>(1, key.size())),
                         before, after);
      ++different;
    }
  }
  return different;
}

// Texts by name, of which some are JSON themselves.
Json with_parsed_texts(const std::map<std::string, std::string>& texts) {
  Json all = Json::object();
  for (const auto& [name, text] : texts) {
    const Json parsed = Json::parse(text, nullptr, false);
    all[name] = parsed.is_object() ? parsed : Json(text);
  }
  return all;
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
  const auto map_text = [](const auto& map) { return Json(map).dump(); };
  line("step", a.step, b.step);
  line("consumed samples", a.consumed_samples, b.consumed_samples);
  line("loss scale", a.loss_scale.scale, b.loss_scale.scale);
  line("loss scale, clean steps", a.loss_scale.clean_steps, b.loss_scale.clean_steps);
  line("loss scale, tolerance left", a.loss_scale.tolerance_left, b.loss_scale.tolerance_left);
  line("data indices", map_text(a.data_indices), map_text(b.data_indices));
  line("choices", a.choices, b.choices);
  if (a.machine != b.machine) {  // for people: the numbers are compared themselves
    out << "machine: " << a.machine << " | " << b.machine << '\n';
  }
  return different +
         print_members("state", with_parsed_texts(a.extra), with_parsed_texts(b.extra), out);
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
  table.add("path", paths, "Two checkpoints, or two folders, whose newest checkpoint counts.")
      .positional()
      .required();
  if (!read_options(
          table, arguments, out,
          "usage: bloomery checkpoint diff FIRST SECOND\n\nExits with 0 when state and tensors are "
          "equal bit by bit, otherwise with 1. Options are printed, but do not "
          "count.\n\nexample:\n  bloomery checkpoint diff run/a/step-100 run/b/step-100\n")) {
    return 0;
  }
  check(paths.size() == 2, "two checkpoints are compared, ", paths.size(), " were given");
  const CheckpointReader a = open_newest(paths[0]), b = open_newest(paths[1]);
  out << "comparing " << a.folder().string() << " | " << b.folder().string() << '\n';
  print_members("option", Json::parse(a.state().options), Json::parse(b.state().options), out);
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
