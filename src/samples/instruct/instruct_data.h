// Instruction data from files to samples of each split.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "samples/data_options.h"
#include "samples/instruct/encode_records.h"
#include "samples/instruct/instruct_dataset.h"

namespace bloomery {

class InstructData {
 public:
  // Encodes all records, or finds them encoded, and packs them. An Error names the file and line of
  // a bad one. `folder` may hold the model's own chat template; empty: there is none.
  InstructData(const InstructOptions& options, const DataOptions& data, const Tokenizer& tokenizer,
               const std::string& folder, std::int64_t seed, const Log& log = Log());

  // Sequences of a split; 0: it has no data.
  std::int64_t size(Split split) const;
  // Null where the split has no data.
  std::unique_ptr<Dataset> build(Split split, std::int64_t num_samples) const;
  // Of pairs, as the records are ordered, again from the first one behind the last; no reference.
  std::unique_ptr<Dataset> build_in_order(Split split, std::int64_t num_samples) const;
  // Names the records and how they were encoded.
  const std::string& description(Split split) const;
  // Of pairs: log-probabilities under the reference model, two of each in the order of the records.
  // Samples that are read afterwards have them; who gives them later changes nothing.
  void set_reference(Split split, std::vector<float> values) const;
  const std::vector<float>* reference(Split split) const;  // null: the split has no pairs
  // The chat template that the records were written by, where the model does not have it already;
  // empty: none.
  const std::string& new_chat_template() const { return new_chat_template_; }
  // What was read, cut and left without anything to learn.
  const std::vector<std::string>& report() const { return report_; }

 private:
  using Records = std::shared_ptr<const EncodedRecords>;
  Records read(const RecordEncoding& encoding, const std::vector<std::string>& paths,
               const std::string& cache_folder, const Log& log);
  // The examples [first, last), which are those of a split.
  void add(Split split, const Records& records, std::int64_t first, std::int64_t last);
  class Choice;
  void arrange(const Choice& choice, InstructSamples& samples) const;
  struct Counts {
    std::int64_t tokens = 0, loss_tokens = 0;  // tokens
    std::int64_t cut = 0, empty = 0;           // records
  };
  std::unique_ptr<Dataset> dataset(Split split, std::int64_t num_samples, bool shuffle,
                                   std::shared_ptr<const ReferenceValues> reference) const;
  void report(Split split, const InstructSamples& samples, const Counts& counts);

  const InstructOptions options_;
  const std::int64_t length_, seed_;
  TokenId padding_ = 0;
  std::array<std::shared_ptr<const InstructSamples>, 3> splits_;
  std::array<std::shared_ptr<ReferenceValues>, 3> references_;
  std::string new_chat_template_;
  std::vector<std::string> report_;
};

}  // namespace bloomery
