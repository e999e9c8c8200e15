// The record of a model, as checkpoints carry it: a JSON object of option names and values, all
// that models/describe.cpp and the family describe. Missing names have the defaults of the version
// that wrote it, unknown ones are reported and left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nn/model_options.h"

namespace bloomery {

class OptionTable;

std::string to_record(const ModelOptions& options);

// The options are completed and can be built. `notes` gets a line for each name that is unknown
// here. An Error, starting with `place`, names what is malformed or impossible.
ModelOptions from_record(std::string_view json, const std::string& place,
                         std::vector<std::string>& notes);

// Takes the model's options over into a table that describes one of the same family; `place` says
// where they come from. What was given differently is a contradiction, unless only training asks
// for it.
void read_record(OptionTable& table, const ModelOptions& stored, const std::string& place);

// Where two models differ in their tensors or in what they compute with them, one line each:
// "activation: swiglu here, gelu in the checkpoint". A family is a name: those with the same blocks
// may be equal. What only training asks for (dropout, initial values) is free.
std::vector<std::string> model_differences(const ModelOptions& here, const ModelOptions& stored);

}  // namespace bloomery
