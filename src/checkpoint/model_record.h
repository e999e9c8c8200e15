// What a checkpoint says about its model besides the tensors, in RunState::extra: the options the
// model is built from, its tokenizer, and the dtype that training computed in. docs/formats.md
// names the members.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/snapshot.h"
#include "models/hf_config.h"
#include "models/record.h"
#include "ops/optimizer/rules.h"
#include "tokenizer/load.h"

namespace bloomery {

struct ModelRecord {
  ModelOptions model;
  std::optional<TokenizerOptions> tokenizer;  // none: unknown
  DType dtype = DType::fp32;                  // fp32, bf16 or fp16
  std::vector<std::string> notes;             // what of it a newer program wrote, as read
};

// Replaces the members of `extra` that are the record. Paths of the tokenizer that exist become
// absolute.
void set_model_record(RunState& state, const ModelRecord& record);
// An Error, starting with `place`, names the member that is missing or malformed.
ModelRecord model_record(const RunState& state, const std::string& place);

// The ids of special tokens that a Hugging Face model came with; none of them when there is no
// such member.
void set_token_ids(RunState& state, const HfTokenIds& ids);
HfTokenIds token_ids(const RunState& state, const std::string& place);

// A JSON object with every field. Read, fields that are missing have their defaults, and unknown
// ones are an Error.
std::string to_json(const TokenizerOptions& options);
TokenizerOptions tokenizer_options_from_json(std::string_view json, const std::string& place);

// "fp32", "bf16" or "fp16"; an Error otherwise.
DType training_dtype_of_name(std::string_view name, const std::string& place);

// A parameter's weights are stored under its own name, the optimizer's state under these.
std::string state_name(std::string_view parameter, const StateTensor& tensor);

}  // namespace bloomery
