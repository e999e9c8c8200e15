// Files of torch.save as the files of one of our checkpoints: where in them which part of which
// tensor lies. Nothing is read but what is asked for later.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/megatron/names.h"
#include "checkpoint/pickle/torch_value.h"
#include "checkpoint/reader.h"

namespace bloomery {

class ForeignParts {
 public:
  explicit ForeignParts(std::filesystem::path folder, OpenBytes open = open_input_file)
      : folder_(std::move(folder)), open_(std::move(open)) {}

  const std::filesystem::path& folder() const { return folder_; }
  // Opens a file, named relative to the folder; each once. Its values stay as long as this.
  TorchValue open(const std::string& name);

  // Elements [first, first + count) of the buffer that the segments describe are those of `tensor`
  // from element `from` of it on. The tensors that the parts are of have `suffix` behind their
  // name.
  void add(const std::vector<TensorPart>& segments, const std::string& suffix,
           const TorchValue& tensor, std::int64_t first, std::int64_t from, std::int64_t count);
  // All of them.
  void add(const std::vector<TensorPart>& segments, const std::string& suffix,
           const TorchValue& tensor);

  // Whether something of that tensor was added.
  bool contains(const std::string& name) const { return tensors_.contains(name); }

  // What of a model nothing was added of: "blocks.3.*", or a tensor's name where others of its
  // layer are there.
  std::vector<std::string> missing(const MegatronNames& names) const;

  // The checkpoint of that model. An Error names a tensor that is missing or not whole, and the
  // files, if any, that should have been there. Values are no longer valid.
  CheckpointReader finish(RunState state, const MegatronNames& names,
                          const std::vector<std::string>& absent_files = {});

 private:
  struct File {
    std::string name;
    std::unique_ptr<const TorchObject> object;
    std::vector<StoragePlace> used;
  };
  int file_of(const TorchValue& value) const;
  void add_box(const std::string& name, const Box& box, DType dtype, int file,
               std::uint64_t offset);

  std::filesystem::path folder_;
  OpenBytes open_;
  std::vector<File> files_;
  std::map<std::string, ManifestTensor> tensors_;
};

// Elements of the buffer that segments describe.
std::int64_t num_elements(const std::vector<TensorPart>& segments);

}  // namespace bloomery
