// expect: no enumerator of this enum is between -16 and 127
#include <sluice/schema.hpp>

enum class Code { ok = 200, missing = 404 };
auto schema = sluice::schema_of<Code>();
