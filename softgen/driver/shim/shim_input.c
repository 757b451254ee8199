/* Input devices: a keyboard (event0) and a pointer with absolute coordinates (event1), as evdev shows them.
 *
 * Their descriptors are sockets to the server, which sends struct input_event of what people do on the page of `softgen run --show`; times
 * are CLOCK_MONOTONIC's. The ioctls ask what the devices can do, which never changes. */
#include "shim.h"
#include <linux/input.h>
#include <sys/ioctl.h>
#include <time.h>

enum { KEYBOARD = INPUT + 64, LAST_KEY = KEY_MICMUTE, RANGE = 65535 };

static void set(unsigned char *bits, unsigned number) { bits[number / 8] |= (unsigned char)(1u << number % 8); }

/* What a device can do: types of events for type 0, else codes of a type. */
static void capabilities(int node, unsigned type, unsigned char *bits)
{
    if (type == 0) {
        set(bits, EV_SYN);
        set(bits, EV_KEY);
        set(bits, node == KEYBOARD ? EV_REP : EV_ABS);
        if (node != KEYBOARD)
            set(bits, EV_REL);
    } else if (type == EV_KEY && node == KEYBOARD)
        for (unsigned key = KEY_ESC; key <= LAST_KEY; key++)
            set(bits, key);
    else if (type == EV_KEY)
        for (unsigned key = BTN_LEFT; key <= BTN_MIDDLE; key++)
            set(bits, key);
    else if (type == EV_ABS && node != KEYBOARD) {
        set(bits, ABS_X);
        set(bits, ABS_Y);
    } else if (type == EV_REL && node != KEYBOARD)
        set(bits, REL_WHEEL);
}

static int give(void *argument, const void *data, size_t size, size_t room)
{
    size = size < room ? size : room;
    return copy((void *)data, (uintptr_t)argument, size, 1) ? -EFAULT : (int)size;
}

static int give_text(int node, unsigned number, void *argument, size_t room)
{
    const char *name = node == KEYBOARD ? "softgen keyboard" : "softgen pointer", *text = number == 0x06 ? name : number == 0x07 ? "softgen/input" : NULL;
    return text ? give(argument, text, strlen(text) + 1, room) : -ENOENT;
}

/* EVIOCGABS: the pointer's position is a share of the screen. */
static int give_axis(int node, unsigned axis, void *argument, size_t room)
{
    struct input_absinfo range = {.maximum = RANGE};
    return node != KEYBOARD && axis <= ABS_Y ? give(argument, &range, sizeof range, room) < 0 ? -EFAULT : 0 : -EINVAL;
}

static int set_clock(void *argument)
{
    int clock;
    if (copy(&clock, (uintptr_t)argument, sizeof clock, 0))
        return -EFAULT;
    return clock == CLOCK_MONOTONIC ? 0 : -EINVAL;
}

int input_ioctl(int node, unsigned long request, void *argument)
{
    unsigned number = _IOC_NR(request);
    size_t room = _IOC_SIZE(request);
    unsigned char bits[KEY_CNT / 8] = {0};
    if (number >= 0x20 && number <= 0x3f && _IOC_DIR(request) == _IOC_READ) { /* EVIOCGBIT */
        capabilities(node, number - 0x20, bits);
        return give(argument, bits, sizeof bits, room);
    }
    if (number >= 0x40 && number <= 0x7f && _IOC_DIR(request) == _IOC_READ)
        return give_axis(node, number - 0x40, argument, room);
    if (number >= 0x06 && number <= 0x08)
        return give_text(node, number, argument, room);
    switch (number) {
    case 0x01: { /* EVIOCGVERSION */
        int version = EV_VERSION;
        return give(argument, &version, sizeof version, room) < 0 ? -EFAULT : 0;
    }
    case 0x02: { /* EVIOCGID */
        struct input_id id = {.bustype = BUS_VIRTUAL, .vendor = 0x5067, .product = (uint16_t)(node - INPUT), .version = 1};
        return give(argument, &id, sizeof id, room) < 0 ? -EFAULT : 0;
    }
    case 0x03: { /* EVIOCGREP, EVIOCSREP */
        unsigned repeat[2] = {250, 33};
        return node != KEYBOARD ? -ENOSYS : _IOC_DIR(request) != _IOC_READ ? 0 : give(argument, repeat, sizeof repeat, room) < 0 ? -EFAULT : 0;
    }
    case 0x09: /* EVIOCGPROP */
    case 0x18: /* EVIOCGKEY: no key is down when a program begins to listen */
    case 0x19: /* EVIOCGLED */
    case 0x1a: /* EVIOCGSND */
    case 0x1b: /* EVIOCGSW */
        return give(argument, bits, sizeof bits, room);
    case 0x90: /* EVIOCGRAB: nobody else listens */
    case 0x91: /* EVIOCREVOKE */
        return 0;
    case 0xa0: /* EVIOCSCLOCKID */
        return set_clock(argument);
    default:
        return -EINVAL;
    }
}
