import QtQuick 2.0
Rectangle {
    width: 320; height: 240; color: "steelblue"
    Rectangle {
        width: 100; height: 100; anchors.centerIn: parent; color: "orange"; radius: 12
        RotationAnimation on rotation { from: 0; to: 360; duration: 2000; loops: Animation.Infinite }
    }
    Text { text: "softgen"; color: "white"; font.pixelSize: 28 }
}
