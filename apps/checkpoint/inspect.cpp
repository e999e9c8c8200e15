// `bloomery checkpoint inspect`: what a file of a checkpoint holds, in the lines of Megatron's
// inspect_checkpoint.py.
#include <algorithm>
#include <filesystem>

#include "apps/checkpoint/checkpoint.h"
#include "apps/common/command_line.h"
#include "checkpoint/model_source.h"
#include "checkpoint/pickle/torch_value.h"
#include "checkpoint/stored_file.h"
#include "tensor/safetensors.h"
#include "text/input/python_text.h"

namespace bloomery {
namespace {

using Kind = PickleNode::Kind;

constexpr int kMostDepth = 100;                   // lists may contain themselves
constexpr std::int64_t kMostValues = 10'000'000;  // and be in many places

// "torch.Size([2, 3])"
std::string torch_size(const Shape& shape) {
  std::string text;
  for (int i = 0; i < shape.rank(); ++i) {
    text += concat(i > 0 ? ", " : "", shape[i]);
  }
  return "torch.Size([" + text + "])";
}

// "torch.float32" of "torch float32".
std::string with_dots(std::string name) {
  std::ranges::replace(name, ' ', '.');
  return name;
}

class ValuePrinter {
 public:
  explicit ValuePrinter(std::ostream& out) : out_(out) {}

  void print(const TorchValue& value, const std::string& name, int depth = 0) {
    count(value, depth);
    if (value.is_dict()) {
      for (const TorchValue::Item& item : value.items()) {
        print(item.value, name.empty() ? item.key : concat(name, ".", item.key), depth + 1);
      }
    } else if (value.kind() == Kind::list || value.kind() == Kind::tuple) {
      for (const TorchValue& element : value.elements()) {
        print(element, name, depth + 1);
      }
    } else if (value.is_tensor()) {
      tensor(name, value.tensor().shape);
    } else {
      out_ << "[other] " << name << " = "
           << (value.kind() == Kind::text ? value.text() : shown(value, depth)) << '\n';
    }
  }
  void tensor(const std::string& name, const Shape& shape) {
    out_ << "[tensor] " << name << " = " << torch_size(shape) << '\n';
  }

 private:
  void count(const TorchValue& value, int depth) {
    check(depth <= kMostDepth && ++values_ <= kMostValues, value.object().source(), ": ",
          value.path(), " has too many values within values to be shown");
  }

  // As Python's repr.
  std::string shown(const TorchValue& value, int depth) {
    count(value, depth);
    switch (value.kind()) {
      case Kind::none:
        return "None";
      case Kind::boolean:
        return value.flag() ? "True" : "False";
      case Kind::integer:
        return std::to_string(value.integer());
      case Kind::real:
        return python_number(value.real());
      case Kind::text:
        return "'" + value.text() + "'";
      case Kind::global:
        return with_dots(value.text());
      default:
        return shown_object(value, depth);
    }
  }

  std::string shown_object(const TorchValue& value, int depth) {
    if (value.is_tensor()) return "tensor of " + torch_size(value.tensor().shape);
    if (value.is_dict()) {
      std::string text;
      for (const TorchValue::Item& item : value.items()) {
        text += concat(text.empty() ? "'" : ", '", item.key, "': ", shown(item.value, depth + 1));
      }
      return "{" + text + "}";
    }
    if (value.is_sequence()) {
      std::string text;
      for (const TorchValue& element : value.elements()) {
        text += (text.empty() ? "" : ", ") + shown(element, depth + 1);
      }
      return value.kind() == Kind::tuple  ? "(" + text + ")"
             : value.kind() == Kind::list ? "[" + text + "]"
                                          : "torch.Size([" + text + "])";
    }
    return shown_instance(value, depth);
  }

  // Attributes are shown of what holds options.
  std::string shown_instance(const TorchValue& value, int depth) {
    const std::string name = with_dots(std::string(value.class_name()));
    const auto attributes = value.attributes();
    if (name != "argparse.Namespace" || !attributes || !attributes->is_dict()) {
      return "<" + (name.empty() ? "an object" : name) + ">";
    }
    std::string text;
    for (const TorchValue::Item& item : attributes->items()) {
      text += concat(text.empty() ? "" : ", ", item.key, "=", shown(item.value, depth + 1));
    }
    return "Namespace(" + text + ")";
  }

  std::ostream& out_;
  std::int64_t values_ = 0;
};

void show_file(const std::string& path, std::ostream& out) {
  check(std::filesystem::exists(path), path, " does not exist");
  ValuePrinter printer(out);
  if (std::filesystem::is_directory(path)) {
    Device device;
    Stream stream(device);
    const auto source = open_model(stream, path, Log(0, 1, LogLevel::error));
    out << "loading checkpoint: " << path << '\n';
    for (const auto& [name, entry] : source->weights()) {
      printer.tensor(name, entry.shape);
    }
    return;
  }
  out << "loading checkpoint file: " << path << '\n';
  if (path.ends_with(".safetensors")) {
    const SafetensorsFile file{path};
    for (const auto& [name, entry] : file.entries()) {
      printer.tensor(name, entry.shape);
    }
    return;
  }
  const TorchObject object(open_input_file(path), true);
  printer.print(TorchValue(object), "");
}

}  // namespace

int checkpoint_inspect(const Arguments& arguments, std::ostream& out) {
  std::string path;
  OptionTable table;
  table.section("what to show");
  table
      .add("path", path,
           "File of PyTorch (.pt, .bin) or safetensors, or the folder of a model in any form.")
      .positional()
      .required();
  if (!read_options(table, arguments, out,
                    "usage: bloomery checkpoint inspect PATH\n\nPrints each tensor with its shape "
                    "and each other value, as Megatron's inspect_checkpoint.py. Nothing in a file "
                    "is executed.\n\nexample:\n  bloomery checkpoint inspect "
                    "iter_0001000/mp_rank_00/model_optim_rng.pt\n")) {
    return 0;
  }
  show_file(path, out);
  return 0;
}

}  // namespace bloomery
