// Which versions of the vendors' libraries this process computes with.
#pragma once

#include <string>

namespace bloomery {

// "; cuBLASLt 13.1.0, cuDNN 9.14.0": those that are loaded now, nothing where none is.
std::string loaded_library_versions();

}  // namespace bloomery
