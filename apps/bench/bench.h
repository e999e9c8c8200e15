// `bloomery bench`: one function per benchmark.
#pragma once

#include <ostream>

#include "apps/common/command.h"

namespace bloomery {

int bench(const Arguments& arguments, std::ostream& out);
int bench_data(const Arguments& arguments, std::ostream& out);
int bench_generate(const Arguments& arguments, std::ostream& out);
int bench_minhash(const Arguments& arguments, std::ostream& out);
int bench_offload(const Arguments& arguments, std::ostream& out);
int bench_ops(const Arguments& arguments, std::ostream& out);
int bench_tokenizer(const Arguments& arguments, std::ostream& out);
int bench_train(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
