#pragma once

// g++ 12 destroys temporaries in co_await expressions twice, and finds no names of members: every
// call of a tool with arguments would fail. It does both without a warning.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
#error "g++ before 13 miscompiles coroutines: use clang 19, or g++ 13 or later"
#endif
