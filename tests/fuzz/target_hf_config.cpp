// config.json of a GPT-2: what is accepted must also be written and read again.
#include "checkpoint/hf/gpt2.h"
#include "fuzz.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  const Gpt2Config config = read_gpt2_config(as_text(input), "config.json");
  read_gpt2_config(write_gpt2_config(config, DType::fp32), "written config.json");
}

}  // namespace bloomery
