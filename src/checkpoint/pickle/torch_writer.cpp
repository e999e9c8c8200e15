#include "checkpoint/pickle/torch_writer.h"

#include <bit>
#include <cstring>
#include <deque>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/pickle/strided_copy.h"
#include "checkpoint/pickle/zip_writer.h"

namespace bloomery {
namespace {

const char* storage_name(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return "FloatStorage";
    case DType::bf16:
      return "BFloat16Storage";
    case DType::fp16:
      return "HalfStorage";
    case DType::fp64:
      return "DoubleStorage";
    case DType::int32:
      return "IntStorage";
    case DType::int64:
      return "LongStorage";
    case DType::uint8:
      return "ByteStorage";
    default:
      throw Error(concat("PyTorch has no storage of ", dtype));
  }
}

// Protocol 2, as torch.save uses it, without keeping values for later use.
class Pickler {
 public:
  explicit Pickler(std::vector<const PyValue::Tensor*>& tensors) : tensors_(tensors) {}

  std::string text(const PyValue& value) {
    out_ = "\x80\x02";
    put(value);
    return out_ + ".";
  }

 private:
  void put(const PyValue& value) {
    std::visit([this](const auto& each) { put_value(each); }, value.get());
  }

  template <class Number>
  void raw(Number number) {
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    out_.append(bytes, sizeof number);
  }

  void put_value(std::monostate) { out_ += 'N'; }
  void put_value(bool value) { out_ += value ? '\x88' : '\x89'; }
  void put_value(std::int64_t value) {
    if (value >= std::numeric_limits<std::int32_t>::min() &&
        value <= std::numeric_limits<std::int32_t>::max()) {
      out_ += 'J';
      raw(static_cast<std::int32_t>(value));
    } else {
      out_ += "\x8a\x08";
      raw(value);
    }
  }
  void put_value(double value) {
    out_ += 'G';
    raw(__builtin_bswap64(std::bit_cast<std::uint64_t>(value)));
  }
  void put_value(const std::string& value) {
    out_ += 'X';
    raw(static_cast<std::uint32_t>(value.size()));
    out_ += value;
  }
  void put_value(const PyValue::List& list) {
    out_ += "](";
    for (const PyValue& item : list) {
      put(item);
    }
    out_ += 'e';
  }
  void put_value(const PyValue::Tuple& tuple) { put_tuple(tuple.items); }
  void put_tuple(const PyValue::List& items) {
    out_ += '(';
    for (const PyValue& item : items) {
      put(item);
    }
    out_ += 't';
  }
  void put_items(const PyValue::Dict& dict) {
    out_ += '(';
    for (const auto& [key, value] : dict) {
      put(key);
      put(value);
    }
    out_ += 'u';
  }
  void put_value(const PyValue::Dict& dict) {
    out_ += '}';
    put_items(dict);
  }
  void put_value(const PyValue::Ordered& dict) {
    put_value(PyValue::Call{{"collections", "OrderedDict"}, {}});
    put_items(dict.items);
  }
  void put_value(const PyValue::Global& global) {
    out_ += concat("c", global.module, "\n", global.name, "\n");
  }
  void put_value(const PyValue::Call& call) {
    put_value(call.type);
    put_tuple(call.arguments);
    out_ += 'R';
  }
  void put_value(const PyValue::Object& object) {
    put_value(object.type);
    out_ += ")\x81";  // a new one, without calling it
    put_value(object.attributes);
    out_ += 'b';
  }
  void put_shape(const Shape& shape) {
    PyValue::List extents;
    for (int i = 0; i < shape.rank(); ++i) {
      extents.emplace_back(shape[i]);
    }
    put_tuple(extents);
  }
  void put_value(const PyValue::Tensor& tensor) {
    put_value(PyValue::Global{"torch._utils", "_rebuild_tensor_v2"});
    out_ += "((";
    put_value(std::string("storage"));
    put_value(PyValue::Global{"torch", storage_name(tensor.dtype)});
    put_value(std::to_string(tensors_.size()));
    put_value(std::string("cpu"));
    put_value(tensor.shape.numel());
    out_ += "tQ";
    put_value(std::int64_t{0});
    put_shape(tensor.shape);
    put_shape(contiguous_strides(tensor.shape));
    put_value(false);
    put_value(PyValue::Call{{"collections", "OrderedDict"}, {}});
    out_ += "tR";
    tensors_.push_back(&tensor);
  }

  std::vector<const PyValue::Tensor*>& tensors_;
  std::string out_;
};

// One file on its way.
class TorchFileWriter {
 public:
  explicit TorchFileWriter(const TorchFileToWrite& contents)
      : file_(contents.path), zip_(file_), path_(contents.path) {
    const std::string pickle = Pickler(tensors_).text(contents.value);
    add("data.pkl", pickle);
    add("byteorder", "little");
  }

  // Writes the next piece; false: there was none, and the file is finished.
  bool write_piece() {
    if (tensor_ == tensors_.size()) {
      return false;
    }
    const PyValue::Tensor& tensor = *tensors_[tensor_];
    const auto size = static_cast<std::size_t>(tensor.shape.numel()) * size_of(tensor.dtype);
    if (piece_ == 0) {
      zip_.begin(concat(kFolder, "data/", tensor_), size);
    }
    if (piece_ < tensor.pieces.size()) {
      const std::vector<std::byte> bytes = tensor.pieces[piece_++]();
      zip_.append(bytes);
      written_ += bytes.size();
    }
    if (piece_ == tensor.pieces.size()) {
      check(written_ == size, path_.string(), ": a tensor of ", tensor.shape, " with ", written_,
            " bytes");
      zip_.end();
      ++tensor_;
      piece_ = written_ = 0;
    }
    return true;
  }

  void commit() {
    add("version", "3\n");
    zip_.finish();
    file_.commit();
  }

 private:
  static constexpr std::string_view kFolder = "archive/";
  void add(std::string_view name, const std::string& text) {
    zip_.add(concat(kFolder, name), std::as_bytes(std::span(text)));
  }

  AtomicFile file_;
  ZipWriter zip_;
  std::filesystem::path path_;
  std::vector<const PyValue::Tensor*> tensors_;
  std::size_t tensor_ = 0, piece_ = 0, written_ = 0;  // what is next
};

}  // namespace

PyValue::Tensor single_number(float number, const Shape& shape) {
  return {DType::fp32, shape, {[number] {
            const auto bytes = std::as_bytes(std::span(&number, 1));
            return std::vector(bytes.begin(), bytes.end());
          }}};
}

void write_torch_files(const std::vector<TorchFileToWrite>& files) {
  std::deque<TorchFileWriter> writers;
  for (const TorchFileToWrite& file : files) {
    writers.emplace_back(file);
  }
  for (bool more = true; more;) {
    more = false;
    for (TorchFileWriter& writer : writers) {
      more |= writer.write_piece();
    }
  }
  for (TorchFileWriter& writer : writers) {
    writer.commit();
  }
}

void write_torch_file(const std::filesystem::path& path, const PyValue& value) {
  write_torch_files({{path, value}});
}

}  // namespace bloomery
