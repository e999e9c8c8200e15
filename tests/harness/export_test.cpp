// Not a check: `BLOOMERY_EXPORT=FOLDER bloomery_ops_test --gtest_also_run_disabled_tests
// --gtest_filter='*DISABLED_Export*'` writes the op cases for tools/golden/op_errors.py.
#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

TEST(OpCases, DISABLED_Export) {
  const char* folder = std::getenv("BLOOMERY_EXPORT");
  ASSERT_NE(folder, nullptr) << "set BLOOMERY_EXPORT to a folder";
  export_cases(folder);
}

}  // namespace
}  // namespace bloomery::testing
