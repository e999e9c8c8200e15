#include "harness/golden_errors.h"

#include <cstdlib>
#include <fstream>
#include <map>

namespace bloomery::testing {
namespace {

std::map<std::string, double> read_errors() {
  std::map<std::string, double> errors;
  std::ifstream file(repository_root() + "/tests/golden/op_errors.txt");
  std::string case_name, dtype, tensor;
  double error = 0;
  while (file >> case_name >> dtype >> tensor >> error) {
    errors[case_name + " " + dtype + " " + tensor] = error;
  }
  return errors;
}

}  // namespace

std::string repository_root() {
  const char* root = std::getenv("BLOOMERY_ROOT");
  return root != nullptr ? root : ".";
}

double golden_error(const std::string& case_name, DType dtype, const std::string& tensor) {
  static const std::map<std::string, double> errors = read_errors();
  const auto found = errors.find(case_name + " " + name(dtype) + " " + tensor);
  return found == errors.end() ? -1.0 : found->second;
}

}  // namespace bloomery::testing
