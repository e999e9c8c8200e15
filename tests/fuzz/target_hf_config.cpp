// config.json of every family: what is accepted must also be written and read again.
#include "checkpoint/hf/hf_form.h"
#include "fuzz.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  const HfModelConfig config = read_hf_config(as_text(input), "config.json");
  const std::string text = hf_config_text(*config.form, config.options, config.tokens, DType::fp32);
  read_hf_config(text, "written config.json");
}

}  // namespace bloomery
