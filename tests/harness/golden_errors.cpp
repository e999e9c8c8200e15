#include "harness/golden_errors.h"

#include <cstdlib>
#include <fstream>
#include <map>

#include "base/error.h"

namespace bloomery::testing {
namespace {

std::map<std::string, double> read_errors() {
  std::map<std::string, double> errors;
  const std::string path = repository_root() + "/tests/golden/op_errors.txt";
  std::ifstream file(path);
  check(file.good(), path, " cannot be read: run from the repository or set BLOOMERY_ROOT");
  std::string case_name, dtype, tensor;
  double error = 0;
  while (file >> case_name >> dtype >> tensor >> error) {
    errors[case_name + " " + dtype + " " + tensor] = error;
  }
  return errors;
}

const std::map<std::string, double>& stored_errors() {
  static const std::map<std::string, double> errors = read_errors();
  return errors;
}

}  // namespace

std::string repository_root() {
  const char* root = std::getenv("BLOOMERY_ROOT");
  return root != nullptr ? root : ".";
}

double golden_error(const std::string& case_name, DType dtype, const std::string& tensor) {
  const auto found = stored_errors().find(case_name + " " + name(dtype) + " " + tensor);
  return found == stored_errors().end() ? -1.0 : found->second;
}

bool has_golden_errors(const std::string& case_name) {
  const std::string op = case_name.substr(0, case_name.find('/') + 1);
  const auto first = stored_errors().lower_bound(op);
  return first != stored_errors().end() && first->first.starts_with(op);
}

}  // namespace bloomery::testing
